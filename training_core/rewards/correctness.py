"""The correctness leaf: 1 when the number in the completion equals the answer, else 0.

Only closed `<answer>` tags count. Several tags with equal numbers are fine; several *different*
numbers score 0, so that spraying answers does not pay. An answer of the dataset that is no number
leaves the rollout unscored (`gold_bad`): that is the dataset's fault, not the model's.
Called by `training_core.rewards.tree`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from training_core.contract.rewards import CorrectnessReward
from training_core.rewards.completion import CompletionView, LeafScore, scored, shown, unscored
from training_core.rewards.numbers import MAX_CHARS, Number, parse_number
from training_core.rewards.tags import closed_contents

_LOOSE_NUMBER = re.compile(
    r"(?<![\w.])[-+\u2212]?[$€£¥₹]?[0-9][0-9,_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
    r"(?:\s?/\s?[0-9]+)?\s?%?"
)


def score_correctness(spec: CorrectnessReward, view: CompletionView) -> LeafScore:
    """Compare the completion's number with the answer."""
    gold = parse_number(view.answer)
    if gold is None:
        return unscored("gold_bad", f"the right answer {shown(view.answer)!r} is not a number")
    found = find_answer(spec.answer_tag, view.text)
    if isinstance(found, LeafScore):
        return found
    text, number = found
    equal = equals(number, gold, spec.tolerance)
    verdict = "equals" if equal else "differs from"
    return scored(float(equal), f"answer {shown(text)} {verdict} {shown(view.answer)}")


def find_answer(tag: str, text: str) -> tuple[str, Number] | LeafScore:
    """The one number that a completion gives, as text and value, or the score of having none."""
    contents = closed_contents(text, tag) if tag else _last_number(text)
    if not contents:
        return scored(0.0, _nothing_found(tag, text))
    answers: dict[Number, str] = {}
    for content in contents:
        number = parse_number(content)
        if number is None:
            return scored(0.0, _no_number(tag, content))
        answers.setdefault(number, content.strip())
    if len(answers) > 1:
        first, second = [shown(answer) for answer in answers.values()][:2]
        return scored(0.0, f"several different answers: {first} and {second}")
    number, content = next(iter(answers.items()))
    return content, number


def equals(number: Number, gold: Number, tolerance: float) -> bool:
    """Whether two numbers agree: |number - gold| <= tolerance * |gold|, units as far as given."""
    if number.unit and gold.unit and number.unit != gold.unit:
        return False
    value, target = number.value, gold.value
    if number.percent and not gold.percent:
        value /= 100
    elif gold.percent and not number.percent:
        return _near(value, target, tolerance) or _near(value, target / 100, tolerance)
    return _near(value, target, tolerance)


def _near(value: Fraction, target: Fraction, tolerance: float) -> bool:
    """Relative comparison; beside a target of 0 only 0 is near."""
    if tolerance == 0 or value == target:
        return value == target
    return abs(value - target) <= _exact(tolerance) * abs(target)


@lru_cache(maxsize=64)
def _exact(tolerance: float) -> Fraction:
    """A tolerance as it was typed: 0.1 means one tenth."""
    return Fraction(repr(tolerance))


def _last_number(text: str) -> list[str]:
    """The last number in running text, without the comma or full stop after it.

    Looked for around the last digit first, since completions can be long.
    """
    digit = max(text.rfind(digit) for digit in "0123456789")
    for part in (text[max(0, digit - MAX_CHARS) : digit + 8], text):
        found = _LOOSE_NUMBER.findall(part) if digit >= 0 else []
        if found:
            return [found[-1].strip().rstrip(",_")]
    return []


def _nothing_found(tag: str, text: str) -> str:
    """Why there is nothing to compare."""
    if not tag:
        return "no number in the completion"
    if f"<{tag}>" in text:
        return f"<{tag}> is never closed"
    return f"no <{tag}> tag"


def _no_number(tag: str, content: str) -> str:
    """Why a content is no answer."""
    if not content.strip():
        return f"<{tag}> is empty"
    return f"answer {shown(content)!r} is not a number"
