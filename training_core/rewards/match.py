"""The match leaf: 1 when the text of the answer equals the right one, else 0.

For answers that are words: a choice, a name, a short phrase. Both sides are brought to one form
first: Unicode NFKC, runs of white space as one space, and, unless the spec says otherwise, one case
and no sentence marks, quotes or brackets at the ends. Signs that belong to names (`C#`, `$5`) stay.
As in the correctness leaf only closed tags count, and several different answers score 0.
Called by `training_core.rewards.tree`.
"""

from __future__ import annotations

import unicodedata

from training_core.contract.rewards import MatchReward
from training_core.rewards.completion import CompletionView, LeafScore, scored, shown, unscored
from training_core.rewards.tags import closed_contents

END_MARKS = ".,;:!?…\"'`“”„‘’«»‹›()[]{}*_。、，；：！？「」『』（）"
"""What may stand around an answer without being part of it."""


def score_match(spec: MatchReward, view: CompletionView) -> LeafScore:
    """Compare the completion's answer with the right one."""
    gold = normalise(view.answer, spec)
    if not gold:
        return unscored("gold_bad", f"the right answer {shown(view.answer)!r} is empty")
    contents = closed_contents(view.text, spec.answer_tag) if spec.answer_tag else [view.text]
    if not contents:
        return scored(0.0, _nothing_found(spec.answer_tag, view.text))
    answers: dict[str, str] = {}
    for content in contents:
        answers.setdefault(normalise(content, spec), content.strip())
    if len(answers) > 1:
        first, second = [shown(answer) for answer in answers.values()][:2]
        return scored(0.0, f"several different answers: {first!r} and {second!r}")
    answer, text = next(iter(answers.items()))
    if not answer:
        return scored(0.0, "the answer is empty")
    verdict = "equals" if answer == gold else "differs from"
    return scored(float(answer == gold), f"{shown(text)!r} {verdict} {shown(view.answer)!r}")


def normalise(text: str, spec: MatchReward) -> str:
    """One form for all spellings of an answer; of marks alone the marks stay."""
    found = " ".join(unicodedata.normalize("NFKC", text).split())
    if spec.ignore_case:
        found = unicodedata.normalize("NFKC", found.casefold())
    if spec.ignore_end_marks:
        found = found.strip(f"{END_MARKS} ") or found
    return found


def _nothing_found(tag: str, text: str) -> str:
    """Why there is nothing to compare."""
    return f"<{tag}> is never closed" if f"<{tag}>" in text else f"no <{tag}> tag"
