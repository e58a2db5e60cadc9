"""Add an entry to the audit log. Called by services inside the transaction of the deed itself.

The deed and its entry are kept together or not at all, so the log neither misses a deed nor tells
of one that failed.
"""

from __future__ import annotations

from typing import Any

from webapp.audit.actions import ACTIONS
from webapp.audit.models import AuditEntry
from webapp.audit.source import current_address, current_token


def record(
    action: str,
    *,
    actor: Any,
    kind: str,
    key: object,
    label: str,
    project: Any = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditEntry:
    """Add one entry. `actor` is a User or None, `project` a Project or None.

    Raises KeyError for an action that `ACTIONS` does not list.
    """
    ACTIONS[action]
    return AuditEntry.objects.create(
        action=action,
        actor=actor.get_username() if actor is not None else "",
        actor_key=actor.pk if actor is not None else None,
        project_key=project.pk if project is not None else None,
        project=project.name if project is not None else "",
        kind=kind,
        key=str(key)[:64],
        label=_plain(label)[:200],
        before=_plain(before or {}),
        after=_plain(after or {}),
        address=current_address.get(),
        token=current_token.get(),
    )


def was_recorded(action: str, actor: Any, key: object) -> bool:
    """Whether the log has it that this person did that to the thing of that key."""
    entries = AuditEntry.objects.filter(actor=actor.get_username(), actor_key=actor.pk)
    return entries.filter(action=action, key=str(key)[:64]).exists()


def _plain(value: Any) -> Any:
    """The value as PostgreSQL can keep it: a NUL in a text is shown, and refused by it."""
    if isinstance(value, str):
        return value.replace("\0", "␀")
    if isinstance(value, dict):
        return {_plain(key): _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
