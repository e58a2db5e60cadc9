"""The audit log as a page asks for it: filters from the address, pages by number, rows for a file.

Called by the audit views. Pages go by the entry's number (keyset): entries are never deleted, so
the table only grows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_date

from webapp.accounts.models import Project
from webapp.audit.actions import ACTIONS, KINDS
from webapp.audit.models import AuditEntry
from webapp.metrics.export import plain_cell

PAGE_SIZE = 50
MOST_ROWS = 100_000
"""Entries in one file."""
COLUMNS = (
    *("at", "actor", "action", "kind", "key", "label", "project", "before", "after", "address"),
    "token",
)


@dataclass(frozen=True)
class AuditQuery:
    """What the log is asked for."""

    action: str = ""
    """A key of ACTIONS; empty for all."""
    actor: str = ""
    text: str = ""
    """Part of the object's name."""
    since: date | None = None
    until: date | None = None
    """The last day that is shown."""
    before: int | None = None
    """Only entries with smaller numbers."""

    @classmethod
    def from_address(cls, values: Mapping[str, str]) -> AuditQuery:
        """Read a query string; what is not understood is left out."""
        action, before = values.get("action", ""), values.get("before", "")
        return cls(
            action=action if action in ACTIONS else "",
            actor=_plain(values.get("actor", "")),
            text=_plain(values.get("q", "")),
            since=_day(values.get("since", "")),
            until=_day(values.get("until", "")),
            before=int(before) if re.fullmatch(r"[0-9]{1,15}", before) else None,
        )

    def address(self, before: int | None = None) -> str:
        """The query string of this filter, on the first page or after an entry."""
        parts = {
            "action": self.action,
            "actor": self.actor,
            "q": self.text,
            "since": self.since.isoformat() if self.since else "",
            "until": self.until.isoformat() if self.until else "",
            "before": str(before) if before else "",
        }
        return "?" + urlencode({key: value for key, value in parts.items() if value})

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the page is chosen."""
        return bool(self.action or self.actor or self.text or self.since or self.until)


class EntryView(NamedTuple):
    """One entry in words."""

    entry: AuditEntry
    words: str
    kind: str
    """What it was done to, in a word."""
    changes: list[tuple[str, str, str]]
    """(name, before, after) of what changed."""


class AuditPage(NamedTuple):
    """One page of the log."""

    query: AuditQuery
    entries: list[EntryView]
    older: str
    """Address of the following page; empty on the last."""


def entries_of(query: AuditQuery, project: Project | None) -> QuerySet[AuditEntry]:
    """The entries that fit, the newest first; of one project or of all."""
    entries = AuditEntry.objects.all()
    if project is not None:
        entries = entries.filter(project_key=project.pk)
    if query.action:
        entries = entries.filter(action=query.action)
    if query.actor:
        entries = entries.filter(actor__icontains=query.actor)
    if query.text:
        entries = entries.filter(label__icontains=query.text)
    if query.since:
        entries = entries.filter(at__gte=_midnight(query.since))
    if query.until:
        entries = entries.filter(at__lt=_midnight(query.until + timedelta(days=1)))
    return entries.order_by("-pk")


def read_audit(query: AuditQuery, project: Project | None) -> AuditPage:
    """The page that is asked for."""
    entries = entries_of(query, project)
    if query.before is not None:
        entries = entries.filter(pk__lt=query.before)
    found = list(entries[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    older = query.address(before=shown[-1].pk) if len(found) > PAGE_SIZE else ""
    return AuditPage(query, [_view(entry) for entry in shown], older)


def csv_rows(query: AuditQuery, project: Project | None) -> Iterator[list[str]]:
    """Header and the newest MOST_ROWS entries that fit, as cells that are text to a spreadsheet."""
    yield list(COLUMNS)
    for entry in entries_of(query, project)[:MOST_ROWS].iterator(chunk_size=2000):
        values = [getattr(entry, column) for column in COLUMNS]
        yield [plain_cell(_text(value)) for value in values]


def _view(entry: AuditEntry) -> EntryView:
    """One entry in words."""
    names = [*entry.before, *(name for name in entry.after if name not in entry.before)]
    changes = [(n, _text(entry.before.get(n)), _text(entry.after.get(n))) for n in names]
    words = str(ACTIONS.get(entry.action, entry.action))
    return EntryView(entry, words, str(KINDS.get(entry.kind, entry.kind)), changes)


def _text(value: object) -> str:
    """A value as one cell."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    """A search text without what the database cannot hold."""
    return text.strip().replace("\0", "")[:150]


def _day(text: str) -> date | None:
    """A day of the address; None for nonsense and for days beyond the calendar's edges."""
    try:
        day = parse_date(text)
    except ValueError:
        return None
    return day if day is not None and 1970 <= day.year < 9999 else None


def _midnight(day: date) -> datetime:
    """The beginning of a day."""
    return timezone.make_aware(datetime.combine(day, time()))
