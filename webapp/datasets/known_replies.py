"""Replies whose worth is known, scored by the rewards of a run before it is launched.

Called by the check page. The right answer in the form that is asked for must score about 1, a reply
without an answer about 0, and a wrong answer no more than its form is worth; replies that the
dataset brings along are what a warm-up imitates, so they must score about 1 too. Whatever differs
is shown with the rows and the rewards' own words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from training_core.contract.domains import DatasetDomain, DatasetRecord
from training_core.contract.rewards import FormatReward, RewardSpec, WeightedSumReward
from webapp.runs.preflight import right_reply, score_replies

JUNK = "I do not know."
NEAR = 0.02
"""What still counts as about 1 or about 0."""
SHOWN_ODD = 3


class OddReply(NamedTuple):
    """One reply that did not score as it should."""

    reply: str
    answer: str
    reward: float | None
    why: str


class KnownReply(NamedTuple):
    """One kind of reply over all sampled rows."""

    title: str
    expected: str
    """In words: what it should score."""
    example: str
    """The reply of the first row."""
    rows: int
    mean: float | None
    """Mean reward; None when nothing was scored."""
    is_right: bool
    words: str
    """What is wrong and what to do; empty when nothing is."""
    odd: list[OddReply]
    """The first rows that differ."""


def score_known_replies(
    reward: RewardSpec, domain: DatasetDomain, records: Sequence[DatasetRecord]
) -> list[KnownReply]:
    """All kinds, in the order in which they matter; empty without records."""
    if not records:
        return []
    form = form_worth(reward)
    right = [(right_reply(domain, record), record.answer) for record in records]
    found = [_judge(_("The right answer"), _("about 1"), reward, right, 1.0, 1.0, BAD_RIGHT)]
    worked = [(r.demonstration, r.answer) for r in records if r.demonstration is not None]
    if worked:
        found.append(
            _judge(_("Worked replies"), _("about 1"), reward, worked, 1.0, 1.0, BAD_WORKED)
        )
    wrong = _wrong_answers(domain, records)
    if wrong:
        at_most = _("at most %(worth)s, for the form") % {"worth": f"{form:g}"}
        expected = at_most if form else _("about 0")
        found.append(_judge(_("A wrong answer"), expected, reward, wrong, 0.0, form, BAD_WRONG))
    junk = [(JUNK, record.answer) for record in records]
    found.append(_judge(_("No answer"), _("about 0"), reward, junk, 0.0, 0.0, BAD_JUNK))
    return found


def all_answers_are_equal(records: Sequence[DatasetRecord]) -> bool:
    """Whether one reply is right for every row: then there is nothing to learn from."""
    return len({_plain(record.answer) for record in records}) == 1


def form_worth(reward: RewardSpec) -> float:
    """What a reply in the right form scores for that alone."""
    root = reward.root
    if not isinstance(root, WeightedSumReward):
        return 1.0 if isinstance(root, FormatReward) else 0.0
    return math.fsum(term.weight for term in root.terms if isinstance(term.node, FormatReward))


BAD_RIGHT = gettext_noop(
    "%(odd)s of %(rows)s rows differ. Rows whose right answer is not fully rewarded teach the "
    "wrong thing: choose the other way of comparing, or mend the answers in the file."
)
BAD_WORKED = gettext_noop(
    "%(odd)s of %(rows)s rows differ. The warm-up imitates these replies, and the rewards want "
    "another form. Import the file without that column, and the warm-up imitates the right answer "
    "in its tags."
)
BAD_WRONG = gettext_noop(
    "%(odd)s of %(rows)s rows differ. Wrong answers are rewarded: choose the other way of "
    "comparing."
)
BAD_JUNK = gettext_noop(
    "%(odd)s of %(rows)s rows differ. A reply without an answer is rewarded: the model would learn "
    "to say nothing."
)


def _judge(
    title: str,
    expected: str,
    reward: RewardSpec,
    replies: Sequence[tuple[str, str]],
    low: float,
    high: float,
    advice: str,
) -> KnownReply:
    """Score one kind of reply and hold it against what it should score."""
    scores = score_replies(reward, replies)
    known = [score.total for score in scores if score.total is not None]
    odd = [
        OddReply(reply, answer, score.total, "; ".join(s.explanation for s in score.scores))
        for (reply, answer), score in zip(replies, scores, strict=True)
        if score.total is None or not low - NEAR <= score.total <= high + NEAR
    ]
    words = _(advice) % {"odd": len(odd), "rows": len(replies)} if odd else ""
    mean = math.fsum(known) / len(known) if known else None
    return KnownReply(
        title, expected, replies[0][0], len(replies), mean, not odd, words, odd[:SHOWN_ODD]
    )


def _wrong_answers(
    domain: DatasetDomain, records: Sequence[DatasetRecord]
) -> list[tuple[str, str]]:
    """For each row the answer of another one that differs, in the right form."""
    found = []
    for place, record in enumerate(records):
        others = (*records[place + 1 :], *records[:place])
        own = _plain(record.answer)
        other = next((each for each in others if _plain(each.answer) != own), None)
        if other is not None:
            wrong = record.model_copy(update={"answer": other.answer})
            found.append((right_reply(domain, wrong), record.answer))
    return found


def _plain(answer: str) -> str:
    """Answers that differ in case or white space alone are taken for equal here."""
    return " ".join(answer.casefold().split())
