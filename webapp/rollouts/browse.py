"""Find rollout groups for the rollouts tab: steps, filters, one group with its completions.

Called by the views of this app and of `webapp.runs`. Everything that is chosen stands in the
address, so that a link shows the same group to everybody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from webapp.rollouts.models import Rollout, RolloutGroup

LISTED = 200
OUTCOMES: dict[str, tuple[str | Promise, Q]] = {
    "passed": (_("some passed"), Q(passed__gt=0)),
    "failed": (_("none passed"), Q(passed=0)),
    "mixed": (_("mixed"), Q(zero_spread=False)),
    "zero_spread": (_("zero spread"), Q(zero_spread=True)),
    "truncated": (_("cut off"), Q(truncated__gt=0)),
    "unscored": (_("unscored"), Q(unscored__gt=0)),
}
KINDS: dict[str, str | Promise] = {"train": _("Training"), "evaluate": _("Evaluation")}
VIEWS = ("side", "stack")


@dataclass(frozen=True)
class RolloutQuery:
    """What is asked for; the defaults are the newest training step."""

    kind: str = ""
    step: int | None = None
    domain: str = ""
    outcome: str = ""
    text: str = ""
    everywhere: bool = False
    """Whether the search goes through all steps."""
    group: int | None = None
    view: str = "side"

    @classmethod
    def from_address(cls, values: Mapping[str, str]) -> RolloutQuery:
        """Read a query string; what is not understood is left out."""
        kind, outcome, view = (values.get(key, "") for key in ("kind", "outcome", "view"))
        return cls(
            kind=kind if kind in KINDS else "",
            step=_whole(values.get("step", "")),
            domain=values.get("domain", "")[:120].replace("\0", ""),
            outcome=outcome if outcome in OUTCOMES else "",
            text=values.get("q", "").strip()[:200].replace("\0", ""),
            everywhere=values.get("all") == "1",
            group=_whole(values.get("group", "")),
            view=view if view in VIEWS else "side",
        )

    def address(self, **changes: Any) -> str:
        """The query string with some parts changed."""
        new = replace(self, **changes)
        parts = {
            "kind": new.kind,
            "step": "" if new.step is None else str(new.step),
            "domain": new.domain,
            "outcome": new.outcome,
            "q": new.text,
            "all": "1" if new.everywhere else "",
            "group": "" if new.group is None else str(new.group),
            "view": "" if new.view == "side" else new.view,
        }
        return "?" + urlencode({key: value for key, value in parts.items() if value})

    @property
    def follows(self) -> bool:
        """Whether nothing in particular is being read, so that new steps may replace it."""
        return self.step is None and self.group is None and not self.text


@dataclass(frozen=True)
class Browser:
    """The rollouts tab."""

    query: RolloutQuery
    kinds: dict[str, str]
    """Kinds of which there are rollouts."""
    step: int | None
    """Step that is shown; None when there is nothing."""
    previous_step: int | None
    next_step: int | None
    last_step: int | None
    domains: list[str]
    groups: list[RolloutGroup]
    total: int
    """Groups that fit; `groups` holds the first of them."""
    group: RolloutGroup | None
    rollouts: list[Rollout]
    previous_group: RolloutGroup | None
    next_group: RolloutGroup | None

    @property
    def is_empty(self) -> bool:
        """Whether the run has no rollouts at all."""
        return self.step is None

    @property
    def outcomes(self) -> dict[str, str]:
        """Outcome filters and their words."""
        return {key: str(words) for key, (words, _fit) in OUTCOMES.items()}


def browse(run_id: UUID, query: RolloutQuery) -> Browser:
    """What the tab shows."""
    live = RolloutGroup.objects.filter(run_id=run_id, superseded=False)
    kinds = {k: str(words) for k, words in KINDS.items() if live.filter(kind=k).exists()}
    kind = query.kind if query.kind in kinds else next(iter(kinds), "")
    of_kind = live.filter(kind=kind)
    last = of_kind.order_by("-step").values_list("step", flat=True).first()
    step = _nearest_step(of_kind, query.step, last)
    query = replace(query, kind=kind)
    of_step = of_kind.none() if step is None else of_kind.filter(step=step)
    wanted = _filtered(of_kind if query.everywhere else of_step, query)
    groups = list(wanted.order_by("step", "id")[:LISTED])
    group = _chosen(live, groups, query.group)
    place = next((i for i, g in enumerate(groups) if group and g.pk == group.pk), None)
    return Browser(
        query=query,
        kinds=kinds,
        step=step,
        previous_step=_neighbour(of_kind, step, -1),
        next_step=_neighbour(of_kind, step, +1),
        last_step=last,
        domains=sorted(set(of_step.values_list("domain", flat=True))),
        groups=groups,
        total=wanted.count() if len(groups) == LISTED else len(groups),
        group=group,
        rollouts=list(group.rollouts.order_by("index")) if group else [],
        previous_group=groups[place - 1] if place else None,
        next_group=groups[place + 1] if place is not None and place + 1 < len(groups) else None,
    )


def _filtered(groups: QuerySet[RolloutGroup], query: RolloutQuery) -> QuerySet[RolloutGroup]:
    """Domain, outcome and search."""
    if query.domain:
        groups = groups.filter(domain=query.domain)
    if query.outcome:
        groups = groups.filter(OUTCOMES[query.outcome][1])
    if query.text:
        said = Rollout.objects.filter(group=OuterRef("pk"), completion__icontains=query.text)
        groups = groups.filter(
            Q(prompt_text__icontains=query.text) | Q(answer__icontains=query.text) | Exists(said)
        )
    return groups


def _chosen(
    live: QuerySet[RolloutGroup], groups: list[RolloutGroup], key: int | None
) -> RolloutGroup | None:
    """The group that is asked for, else the first of the list."""
    if key is not None:
        listed = next((group for group in groups if group.pk == key), None)
        return listed or live.filter(pk=key).first() or next(iter(groups), None)
    return next(iter(groups), None)


def _nearest_step(
    groups: QuerySet[RolloutGroup], wanted: int | None, last: int | None
) -> int | None:
    """The step asked for, or the nearest before it that has rollouts."""
    if wanted is None or last is None:
        return last
    before = groups.filter(step__lte=wanted).order_by("-step")
    found = before.values_list("step", flat=True).first()
    return found if found is not None else _neighbour(groups, wanted, +1)


def _neighbour(groups: QuerySet[RolloutGroup], step: int | None, direction: int) -> int | None:
    """The next step with rollouts in a direction."""
    if step is None:
        return None
    if direction < 0:
        return groups.filter(step__lt=step).order_by("-step").values_list("step", flat=True).first()
    return groups.filter(step__gt=step).order_by("step").values_list("step", flat=True).first()


def _whole(text: str) -> int | None:
    """A number from the address."""
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None
