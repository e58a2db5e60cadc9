"""Presets, workers and the caller, as programs see them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from training_core.contract.presets import Preset
from webapp.accounts.models import Project, Role
from webapp.api.auth import Caller
from webapp.api.outputs.document import Document
from webapp.api.scopes import Scope
from webapp.workers_page.overview import QueueView, WorkerView


class MembershipOut(Document):
    """A project that the caller is in."""

    slug: str
    """What operations call it."""
    name: str
    role: Role
    """viewer, reviewer, curator, researcher or admin."""
    is_archived: bool
    """Whether it was put away: it is read, and nothing new is made in it."""


class CallerOut(Document):
    """Who a token acts for, and what it may do."""

    user: str
    """User name."""
    is_superuser: bool
    """Whether it may do everything: its person is a superuser and it has the scope admin."""
    token: str
    """What the token is called."""
    scopes: list[Scope]
    expires_at: datetime
    projects: list[MembershipOut]
    """By name, with the role in each; all of them for a superuser."""


class PresetOut(Document):
    """A whole spec that is known to work."""

    slug: str
    title: str
    teaches: str
    """What the model learns."""
    expect: str
    """What you will see."""
    minutes: float
    """Minutes on two processor cores."""
    spec: dict[str, Any]
    """The RunSpec; post it to `/runs` as it is or changed."""


class PresetList(Document):
    """All presets."""

    items: list[PresetOut]


class WorkerOut(Document):
    """One worker process."""

    name: str
    host: str
    state: str
    """idle, busy, silent, deaf or stopped."""
    words: str
    """What that means, where it needs saying."""
    queues: list[str]
    slots: int
    """Tasks that it does at once."""
    devices: list[str]
    run: int | None
    """Number of the run that it trains."""
    seen_at: datetime


class QueueOut(Document):
    """One queue."""

    name: str
    workers: int
    """Workers that listen to it."""
    slots: int
    """Tasks that they do at once together."""
    busy: int
    waiting: int


class WorkersOut(Document):
    """Workers of the last day, and their queues."""

    workers: list[WorkerOut]
    queues: list[QueueOut]


def caller_out(caller: Caller, roles: Iterable[tuple[Project, str]]) -> CallerOut:
    """The answer for the caller, who has these roles."""
    return CallerOut(
        user=caller.user.get_username(),
        is_superuser=caller.user.is_superuser,
        token=caller.token.name,
        scopes=[Scope(scope) for scope in caller.token.scopes],
        expires_at=caller.token.expires_at,
        projects=[
            MembershipOut(
                slug=project.slug,
                name=project.name,
                role=Role(role),
                is_archived=project.archived_at is not None,
            )
            for project, role in roles
        ],
    )


def preset_out(preset: Preset) -> PresetOut:
    """The answer for a preset."""
    fields = {name: getattr(preset, name) for name in PresetOut.model_fields if name != "spec"}
    return PresetOut(**fields, spec=preset.spec.model_dump(mode="json"))


def worker_out(view: WorkerView) -> WorkerOut:
    """The answer for a worker."""
    worker = view.worker
    return WorkerOut(
        name=worker.name,
        host=worker.host,
        state=view.state,
        words=view.words,
        queues=worker.queues,
        slots=worker.slots,
        devices=worker.devices,
        run=view.run.number if view.run is not None else None,
        seen_at=worker.seen_at,
    )


def queue_out(view: QueueView) -> QueueOut:
    """The answer for a queue."""
    return QueueOut(**{name: getattr(view, name) for name in QueueOut.model_fields})
