"""The table of runs: what is asked for in its address, and one page of the answer.

Called by the index view. Pages go by the run's number (keyset), so the ten-thousandth run costs as
much as the first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Count, Q
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.accounts.models import User
from webapp.runs.models import Run, RunQuerySet
from webapp.runs.status import RunState

PAGE_SIZE = 50
GROUPS: dict[str, tuple[RunState, ...]] = {
    "active": (
        RunState.QUEUED,
        RunState.STARTING,
        RunState.RUNNING,
        RunState.PAUSING,
        RunState.STOPPING,
        RunState.LOST,
    ),
    "succeeded": (RunState.SUCCEEDED,),
    "failed": (RunState.FAILED,),
    "halted": (RunState.PAUSED, RunState.STOPPED),
}
GROUP_LABELS: dict[str, str | Promise] = {
    "active": gettext_lazy("Active"),
    "succeeded": gettext_lazy("Succeeded"),
    "failed": gettext_lazy("Failed"),
    "halted": gettext_lazy("Paused or stopped"),
}


@dataclass(frozen=True)
class RunQuery:
    """What the table is asked for."""

    group: str = ""
    """Key of GROUPS, or a single state; empty for all."""
    text: str = ""
    """Words of the name, `#12`, or an owner's name."""
    before: int | None = None
    """Only runs with smaller numbers."""
    archived: bool = False
    """Whether those put away are shown instead."""
    project: str = ""
    """Slug of a project; empty for all that one may see."""

    @classmethod
    def from_address(cls, values: Mapping[str, str]) -> RunQuery:
        """Read a query string; what is not understood is left out."""
        group = values.get("state", "")
        before = values.get("before", "")
        return cls(
            group=group if group in GROUPS or group in set(RunState) else "",
            text=values.get("q", "").strip().replace("\0", "")[:200],
            before=int(before) if re.fullmatch(r"[0-9]{1,9}", before) else None,
            archived=values.get("archived") == "1",
            project=values.get("project", "")[:60].replace("\0", ""),
        )

    def address(self, **changes: str) -> str:
        """The query string with some parts changed; always from the first page on."""
        parts = {
            "state": self.group,
            "q": self.text,
            "archived": "1" if self.archived else "",
            "project": self.project,
        }
        kept = {key: value for key, value in {**parts, **changes}.items() if value}
        return f"?{urlencode(kept)}" if kept else "?"

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the page is chosen."""
        return bool(self.group or self.text or self.archived)


@dataclass(frozen=True)
class Tab:
    """A filter with its count."""

    key: str
    label: str
    count: int
    address: str
    is_current: bool


@dataclass(frozen=True)
class RunPage:
    """One page of the table."""

    query: RunQuery
    runs: list[Run]
    next_address: str
    """Address of the following page; empty on the last."""
    tabs: list[Tab]
    total: int
    """Runs that are not put away."""

    @property
    def is_first(self) -> bool:
        """Whether new runs appear on this page."""
        return self.query.before is None


def read_page(user: User, query: RunQuery) -> RunPage:
    """The page that is asked for."""
    visible = Run.objects.visible_to(user)
    if query.project:
        visible = visible.filter(project__slug=query.project)
    wanted = visible.filter(archived_at__isnull=not query.archived)
    found = list(_matching(wanted, query).select_related("owner", "project")[: PAGE_SIZE + 1])
    runs = found[:PAGE_SIZE]
    following = query.address(before=str(runs[-1].number)) if len(found) > PAGE_SIZE else ""
    tabs = _tabs(visible.unarchived(), query)
    return RunPage(query, runs, following, tabs, tabs[0].count)


def _matching(runs: RunQuerySet, query: RunQuery) -> RunQuerySet:
    """The runs that fit, the newest first."""
    if query.group:
        states = GROUPS.get(query.group) or (RunState(query.group),)
        runs = runs.filter(state__in=[state.value for state in states])
    number = re.fullmatch(r"#?([0-9]{1,9})", query.text)
    if number:
        runs = runs.filter(Q(number=int(number[1])) | Q(name__icontains=query.text))
    elif query.text:
        runs = runs.filter(Q(name__icontains=query.text) | Q(owner__username__icontains=query.text))
    if query.before is not None:
        runs = runs.filter(number__lt=query.before)
    return runs.order_by("-number").defer("spec", "pace")


def _tabs(runs: RunQuerySet, query: RunQuery) -> list[Tab]:
    """All, then each group, with counts from one query."""
    counts = dict(runs.order_by().values_list("state").annotate(Count("id")))
    tabs = [Tab("", _("All"), sum(counts.values()), query.address(state=""), not query.group)]
    for key, states in GROUPS.items():
        count = sum(counts.get(state.value, 0) for state in states)
        address = query.address(state=key)
        tabs.append(Tab(key, str(GROUP_LABELS[key]), count, address, query.group == key))
    return tabs
