"""What a run changed: the gain in words, and the same held-out prompts before and after.

Called by the run's views once a run has ended. The prompts are not picked by hand or by score: they
are the first of each kind (gained, lost, unchanged) in the order of the held-out set, and the card
says so. What would surprise: where the interval holds 0 the card claims nothing, and says how many
items a difference of this size would need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from training_core.contract.events import Interval, PairedDifference
from training_core.contract.spec import RunSpec
from webapp.rollouts.models import Rollout, RolloutGroup
from webapp.runs.models import Run
from webapp.runs.overview import EvalCard, eval_cards, spec_of, title_words
from webapp.runs.status import RunState
from webapp.ui.wording import format_number, format_points

ENDED_WELL = frozenset({RunState.SUCCEEDED, RunState.STOPPED})
SHOWN = 3
KINDS: dict[str, str | Promise] = {
    "gained": gettext_lazy("Gained"),
    "lost": pgettext_lazy("a prompt", "Lost"),
    "unchanged": gettext_lazy("Unchanged"),
}
COUNTS: dict[str, str | Promise] = {
    "gained": gettext_lazy("%(n)s gained"),
    "lost": pgettext_lazy("a prompt", "%(n)s lost"),
    "unchanged": gettext_lazy("%(n)s unchanged"),
}
Z_95 = 1.96
Z_POWER = 0.84
"""Four times out of five."""
Key = tuple[str, str]


class ItemResult(NamedTuple):
    """How one held-out prompt went at one evaluation."""

    group_id: int
    """Row of the group."""
    share: float
    """Of its scored completions that passed."""


class Pair(NamedTuple):
    """One prompt with its answers before and after."""

    kind: str
    """Key of KINDS."""
    group: RolloutGroup
    """The later group; prompt and right answer are those of both."""
    before: Rollout
    after: Rollout

    @property
    def label(self) -> str:
        """The kind in a word."""
        return str(KINDS[self.kind])


class Statement(NamedTuple):
    """What may be said about a difference."""

    words: str
    tone: str
    """ok, bad or calm."""


@dataclass(frozen=True)
class WhatChanged:
    """The card."""

    run: Run
    before: EvalCard | None
    after: EvalCard | None
    statements: tuple[Statement, ...]
    counts: Mapping[str, int]
    """Kind to number of held-out prompts."""
    pairs: tuple[Pair, ...]

    @property
    def is_comparable(self) -> bool:
        """Whether there are two evaluations of the same items."""
        return self.before is not None and self.after is not None

    @property
    def headline(self) -> str:
        """`Solves 55 of 100 held-out items; the base model solved 0.`"""
        if self.before is None or self.after is None:
            return ""
        now, then = solved(self.after), solved(self.before)
        total = self.after.overall.pass_at_1.n
        earlier = self.before.heading[:1].lower() + self.before.heading[1:]
        return _("Solves %(now)s of %(total)s held-out items; the %(earlier)s solved %(then)s.") % {
            "now": format_number(now),
            "total": f"{total:,}",
            "earlier": earlier,
            "then": format_number(then),
        }

    @property
    def counts_words(self) -> str:
        """`12 gained, 0 lost, 3 unchanged`."""
        words = [str(COUNTS[kind]) % {"n": f"{n:,}"} for kind, n in self.counts.items()]
        return _(", ").join(words)

    @property
    def missing_kinds(self) -> str:
        """`None was lost.` for kinds that no prompt is of."""
        none = [str(words).lower() for kind, words in KINDS.items() if not self.counts.get(kind)]
        if not none or not self.pairs:
            return ""
        if len(none) == 1:
            return _("None was %(kind)s.") % {"kind": none[0]}
        return _("None was %(one)s and none %(other)s.") % {"one": none[0], "other": none[1]}


def read_change(run: Run, cards: Sequence[EvalCard] | None = None) -> WhatChanged | None:
    """The card of a run that has ended; None while it goes on or when it failed."""
    if run.state not in ENDED_WELL:
        return None
    cards = eval_cards(run) if cards is None else cards
    before, after = ends(cards)
    if before is None or after is None:
        return WhatChanged(run, None, after, (), {}, ())
    spec = spec_of(run)
    first = _outcomes(run.pk, before.evaluation.step)
    last = _outcomes(run.pk, after.evaluation.step)
    kinds = {key: _kind(first[key], last[key]) for key in last if key in first}
    counts = {kind: sum(found == kind for found in kinds.values()) for kind in KINDS}
    chosen = choose(kinds)
    pairs = _pairs([(kinds[key], first[key], last[key]) for key in chosen])
    return WhatChanged(run, before, after, statements_of(after, spec), counts, pairs)


def ends(cards: Sequence[EvalCard]) -> tuple[EvalCard | None, EvalCard | None]:
    """First and last evaluation of the same items under the same rules; None for none."""
    if not cards:
        return None, None
    last = cards[-1]
    same = [card for card in cards[:-1] if card.evaluation.recipe == last.evaluation.recipe]
    return (same[0] if same else None), last


def solved(card: EvalCard) -> float:
    """Items that an evaluation solved; a fraction where items have several completions."""
    share = card.overall.pass_at_1
    return round(share.value * share.n, 1) if share.n else math.nan


def statements_of(after: EvalCard, spec: RunSpec | None) -> tuple[Statement, ...]:
    """One claim for what RL did after the warm-up, one for everything since the base model."""
    compared = sorted(after.overall.compared, key=lambda change: -change.against_step)
    shown = [*compared[:1], *compared[1:][-1:]]
    return tuple(make_statement(change, _subject(change, spec)) for change in shown)


def make_statement(change: PairedDifference, subject: str) -> Statement:
    """What the paired interval allows one to say."""
    it = change.difference
    values = {
        "subject": subject,
        "points": format_points(it.value),
        "interval": f"[{it.low * 100:.1f}, {it.high * 100:.1f}]".replace("-", "−"),
        "n": f"{it.n:,}",
    }
    if not all(math.isfinite(value) for value in (it.value, it.low, it.high)):
        return Statement(_("%(subject)s: the items cannot be compared.") % values, "calm")
    if it.low > 0:
        return Statement(_("%(subject)s added %(points)s %(interval)s.") % values, "ok")
    if it.high < 0:
        values["points"] = format_points(-it.value).removeprefix("+")
        return Statement(_("%(subject)s took away %(points)s %(interval)s.") % values, "bad")
    needed = items_needed(it)
    if needed is None:
        words = _(
            "%(subject)s: %(points)s %(interval)s. The interval holds 0, so nothing can be claimed."
        )
        return Statement(words % values, "calm")
    words = _(
        "%(subject)s: %(points)s %(interval)s. The interval holds 0, so nothing can be claimed. "
        "If the change is really this large, about %(needed)s held-out items would show it four "
        "times out of five; this run has %(n)s."
    )
    return Statement(words % {**values, "needed": f"{needed:,}"}, "calm")


def items_needed(difference: Interval) -> int | None:
    """Items at which a difference of this size is shown in 4 of 5 runs; None for no difference.

    n' = n ((z_0.975 + z_0.8) s / |d|)^2, where s is the standard error that the 95 % interval
    implies; rounded up to two digits, since it rests on an estimate.
    """
    spread = (difference.high - difference.low) / 2
    if difference.value == 0 or spread <= 0 or difference.n < 2:
        return None
    needed = difference.n * ((Z_95 + Z_POWER) * (spread / Z_95) / abs(difference.value)) ** 2
    if needed > 1e9:
        return None
    unit = 10 ** max(0, math.floor(math.log10(max(needed, 1))) - 1)
    return int(math.ceil(needed / unit) * unit)


def choose(kinds: Mapping[Key, str]) -> list[Key]:
    """Three prompts: the first of each kind in the order of the held-out set. Where a kind is
    missing its place goes to the next of the others, in turn."""
    queues = {kind: [key for key, found in kinds.items() if found == kind] for kind in KINDS}
    chosen: list[Key] = []
    while len(chosen) < SHOWN and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < SHOWN:
                chosen.append(queue.pop(0))
    order = list(KINDS)
    return sorted(chosen, key=lambda key: order.index(kinds[key]))


def _subject(change: PairedDifference, spec: RunSpec | None) -> str:
    """`RL` when nothing but rl stages lies between, else `Training since …`."""
    done, between = 0, set()
    for stage in spec.stages if spec is not None else ():
        if done >= change.against_step:
            between.add(stage.type)
        done += stage.steps
    if between == {"rl"}:
        return pgettext("what made a difference", "RL")
    if change.against_step == 0:
        return _("All training together")
    return _("Training since “%(title)s”") % {"title": title_words(change.against_label)}


def _kind(before: ItemResult, after: ItemResult) -> str:
    """Which way one prompt went."""
    if after.share == before.share:
        return "unchanged"
    return "gained" if after.share > before.share else "lost"


def _outcomes(run_id: UUID, step: int) -> dict[Key, ItemResult]:
    """Held-out prompt to its outcome at a step, in the order of the held-out set; prompts without a
    scored completion are left out. Of several evaluations at the step the newest counts."""
    rows = (
        RolloutGroup.objects.filter(run_id=run_id, kind="evaluate", step=step, superseded=False)
        .order_by("attempt", "pk")
        .values_list("domain", "prompt_id", "pk", "passed", "size", "unscored")
    )
    found: dict[Key, ItemResult] = {}
    for domain, prompt_id, key, passed, size, unscored in rows:
        if size > unscored:
            found[domain, prompt_id] = ItemResult(key, passed / (size - unscored))
    return found


def _pairs(chosen: Sequence[tuple[str, ItemResult, ItemResult]]) -> tuple[Pair, ...]:
    """The prompts with the first completion of each side."""
    keys = [outcome.group_id for _, before, after in chosen for outcome in (before, after)]
    rollouts = Rollout.objects.filter(group_id__in=keys).select_related("group")
    first = {rollout.group_id: rollout for rollout in rollouts.order_by("group_id", "-index")}
    pairs = []
    for kind, before, after in chosen:
        if before.group_id in first and after.group_id in first:
            now = first[after.group_id]
            pairs.append(Pair(kind, now.group, first[before.group_id], now))
    return tuple(pairs)
