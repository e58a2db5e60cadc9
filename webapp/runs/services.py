"""What a person does with runs: launch, stop, pause, resume, fork, put away, delete.

Called by views, the API and commands. Everything here is a row and, after the commit, a message; no
function waits for a worker. Refusals are `LaunchRefused` and `ControlRefused`, whose text is for
people.
"""

from __future__ import annotations

import logging
import re
import shutil
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from training_core.contract.control import Command
from training_core.contract.field_errors import FieldError
from training_core.contract.spec import RunSpec
from webapp.accounts.members import hold_project
from webapp.accounts.models import Project, User
from webapp.accounts.roles import Right, may, who_may
from webapp.audit.record import record
from webapp.metrics import live
from webapp.metrics import services as metrics
from webapp.rollouts import services as rollouts
from webapp.runs import disk, forks, preflight, status
from webapp.runs.access import find_launch_project, launchable_projects, why_no_launch
from webapp.runs.dispatch import dispatch_run_on_commit
from webapp.runs.models import Checkpoint, ControlRequest, Run, RunCounter, RunEvent
from webapp.runs.moves import lock_run, move
from webapp.runs.refusals import ControlRefused, LaunchRefused
from webapp.runs.request_keys import bind_key
from webapp.runs.status import Actor, RunState
from webapp.ui.wording import state_look

logger = logging.getLogger(__name__)
ACTION_OF = {
    (RunState.QUEUED, "launched"): "run.launch",
    (RunState.QUEUED, "resumed"): "run.resume",
    (RunState.STOPPING, ""): "run.stop",
    (RunState.STOPPED, ""): "run.stop",
    (RunState.PAUSING, ""): "run.pause",
    (RunState.PAUSED, ""): "run.pause",
}
"""What a person's move (target, cause) is called in the audit log."""
KEY_FORM = re.compile(r"[0-9a-zA-Z-]{0,64}")


def launch_run(
    *,
    owner: User,
    spec: RunSpec,
    preset: str = "",
    idempotency_key: str | None = None,
    parent: Run | None = None,
    parent_checkpoint: Checkpoint | None = None,
    project: Project | None = None,
) -> Run:
    """Queue a run. The same wish and key of the same owner give the same run. Raises LaunchRefused.

    Without a project it goes to the only one in which the owner may launch, or where they did last.
    """
    key = bind_key(
        _clean_key(idempotency_key or ""),
        spec.model_dump(mode="json"),
        parent_checkpoint.pk if parent_checkpoint else None,
        project.pk if project else None,
    )
    if key and (known := Run.objects.filter(owner=owner, idempotency_key=key).first()):
        return known
    project = _launch_project(owner, project)
    _refuse_bad_spec(spec, project)
    try:
        with transaction.atomic():
            return _create_run(owner, project, spec, preset, key, parent, parent_checkpoint)
    except IntegrityError:
        if not key:
            raise
        # A double click: the other request was first.
        return Run.objects.exclude(idempotency_key="").get(owner=owner, idempotency_key=key)


def restart_from(
    checkpoint: Checkpoint,
    owner: User,
    spec: RunSpec,
    idempotency_key: str | None = None,
    project: Project | None = None,
) -> Run:
    """A child run that goes on from a checkpoint's weights and optimiser state, at its step.

    It belongs to the project of its parent unless another one is named.
    """
    forks.refuse_bad_fork(checkpoint, spec)
    return launch_run(
        owner=owner,
        spec=spec,
        preset=checkpoint.run.preset,
        idempotency_key=idempotency_key,
        parent=checkpoint.run,
        parent_checkpoint=checkpoint,
        project=project or checkpoint.run.project,
    )


@transaction.atomic
def stop_run(run: Run, actor: User) -> Run:
    """End the run: at once where no trainer is at work, else after it has saved its state."""
    run = lock_run(run.pk)
    if run.state not in status.STOPPABLE:
        _refuse_control(_("Run #%(number)s is %(state)s; there is nothing to stop."), run)
    if run.is_live:
        _move(run, RunState.STOPPING, actor, "user", f"{actor} asked to stop.")
        _ask(run, "stop", actor)
    else:
        _move(run, RunState.STOPPED, actor, "user", f"Stopped by {actor}.")
    return run


@transaction.atomic
def pause_run(run: Run, actor: User) -> Run:
    """Save and free the device; `resume_run` goes on from there."""
    run = lock_run(run.pk)
    if run.state not in status.PAUSABLE:
        _refuse_control(_("Run #%(number)s is %(state)s; it cannot be paused."), run)
    if run.is_live:
        _move(run, RunState.PAUSING, actor, "user", f"{actor} asked for a pause.")
        _ask(run, "pause", actor)
    else:
        _move(run, RunState.PAUSED, actor, "user", f"Paused by {actor}.")
    return run


@transaction.atomic
def resume_run(run: Run, actor: User) -> Run:
    """Put it back into the queue; it goes on from its newest checkpoint."""
    run = lock_run(run.pk)
    if run.state not in status.RESUMABLE:
        words = _("Run #%(number)s is %(state)s; it cannot be resumed.")
        if run.state == RunState.SUCCEEDED:
            words = _(
                "Run #%(number)s is %(state)s; it cannot be resumed. Restart from a checkpoint "
                "instead."
            )
        _refuse_control(words, run)
    if problem := disk.problem_with_space(run.read_spec(), run.directory):
        raise ControlRefused(problem)
    if hold_project(run.project.pk).archived_at is not None:
        words = _("The project %(project)s is archived; nothing in it is resumed.")
        raise ControlRefused(words % {"project": run.project})
    _move(run, RunState.QUEUED, actor, "resumed", f"Resumed by {actor}.")
    dispatch_run_on_commit(run.pk)
    return run


def evaluate_now(run: Run, actor: User) -> ControlRequest:
    """Have the trainer evaluate at the next step boundary."""
    return _command(run, "evaluate_now", actor)


def checkpoint_now(run: Run, actor: User) -> ControlRequest:
    """Have the trainer save at the next step boundary."""
    return _command(run, "checkpoint_now", actor)


@transaction.atomic
def archive_run(run: Run, actor: User) -> Run:
    """Put a run away, or take it out again; nothing of it is deleted."""
    run = lock_run(run.pk)
    if run.is_live:
        _refuse_control(_("Run #%(number)s is %(state)s; stop it first."), run)
    run.archived_at = None if run.archived_at else timezone.now()
    run.save(update_fields=["archived_at"])
    cause = "archived" if run.archived_at else "unarchived"
    RunEvent.objects.create(run=run, kind="edit", actor=actor.get_username(), cause=cause)
    _note(run, f"run.{cause.removesuffix('d')}", actor)
    hint = {"run": str(run.pk), "number": run.number, "state": run.state}
    live.publish(live.project_topic("runs", run.project_id), "state", hint)
    return run


@transaction.atomic
def delete_run(run: Run, actor: User) -> None:
    """Delete a finished run's rows and directory. Its children keep their own checkpoints."""
    run = lock_run(run.pk)
    if not run.is_terminal and run.state != RunState.DRAFT:
        _refuse_control(_("Run #%(number)s is %(state)s; only finished runs are deleted."), run)
    hint = {"run": str(run.pk), "number": run.number, "state": "deleted"}
    live.publish(live.project_topic("runs", run.project_id), "state", hint)
    metrics.delete_run(run.pk)
    rollouts.delete_run(run.pk)
    directory = run.directory
    _note(run, "run.delete", actor, before={"state": run.state, "step": run.step})
    logger.info("Run #%d (%s) is deleted by %s", run.number, run.pk, actor)
    run.delete()
    transaction.on_commit(lambda: _remove_directory(directory), robust=True)


def _clean_key(key: str) -> str:
    """The key that makes a double click one run. Raises LaunchRefused for what is none."""
    if not KEY_FORM.fullmatch(key):
        raise LaunchRefused(
            _(
                "The form's idempotency_key must be at most 64 letters, digits and hyphens; "
                "the page has a new one now, so launch again."
            )
        )
    return key


def _launch_project(owner: User, project: Project | None) -> Project:
    """Where the run goes. Raises LaunchRefused at the field `project`."""
    if project is not None:
        if may(owner, Right.LAUNCH, project):
            return project
        if not may(owner, Right.VIEW, project):
            _refuse_project(_("There is no such project."))
        if project.archived_at is not None:
            words = _("The project %(project)s is archived; choose another.")
            _refuse_project(words % {"project": project})
        words = _("You may not launch in %(project)s. Ask %(who)s.")
        _refuse_project(words % {"project": project, "who": who_may(Right.LAUNCH, project)})
    found = find_launch_project(owner)
    if found is None:
        names = [str(each) for each in launchable_projects(owner)]
        if not names:
            _refuse_project(why_no_launch(owner))
        words = _("Choose the project that the run belongs to: %(names)s.")
        _refuse_project(words % {"names": ", ".join(names)})
    return found


def _refuse_control(words: str, run: Run) -> NoReturn:
    """Raise ControlRefused with a sentence over the run's number and state."""
    state = state_look(run.state).label
    raise ControlRefused(words % {"number": run.number, "state": state})


def _refuse_project(message: str) -> NoReturn:
    """Raise LaunchRefused at the field `project`."""
    raise LaunchRefused(message, [FieldError("project", message)])


def _refuse_bad_spec(spec: RunSpec, project: Project) -> None:
    """Raise LaunchRefused when the spec cannot run here."""
    if errors := preflight.check(spec, project):
        first = errors[0]
        raise LaunchRefused(f"{first.path}: {first.message}", errors)
    if problem := disk.problem_with_space(spec):
        raise LaunchRefused(problem)


def _create_run(
    owner: User,
    project: Project,
    spec: RunSpec,
    preset: str,
    key: str,
    parent: Run | None,
    parent_checkpoint: Checkpoint | None,
) -> Run:
    """The row in state queued, its event, its directory where it starts from a checkpoint."""
    _hold_parent(parent)
    if hold_project(project.pk).archived_at is not None:
        words = _("The project %(project)s has just been archived; choose another.")
        _refuse_project(words % {"project": project})
    spec = preflight.fill_content_hashes(spec)
    run = Run.objects.create(
        number=RunCounter.take_next(),
        name=spec.name,
        owner=owner,
        project=project,
        spec=spec.model_dump(mode="json"),
        spec_version=spec.spec_version,
        preset=preset,
        parent=parent,
        parent_checkpoint=parent_checkpoint,
        idempotency_key=key,
        total_steps=spec.total_steps,
        step=parent_checkpoint.step if parent_checkpoint else 0,
    )
    if parent_checkpoint is not None:
        forks.link_checkpoint(parent_checkpoint, run)
    _move(run, RunState.QUEUED, owner, "launched", f"Launched by {owner}.")
    dispatch_run_on_commit(run.pk)
    return run


def _hold_parent(parent: Run | None) -> None:
    """Keep the parent from being deleted until its child is there. Raises LaunchRefused."""
    if parent is None:
        return
    try:
        lock_run(parent.pk)
    except Run.DoesNotExist:
        raise LaunchRefused(
            _("Run #%(number)s, which this one was to start from, has just been deleted.")
            % {"number": parent.number}
        ) from None


@transaction.atomic
def _command(run: Run, command: Command, actor: User) -> ControlRequest:
    """A wish that changes no state."""
    run = lock_run(run.pk)
    if run.state not in status.COMMANDABLE:
        _refuse_control(_("Run #%(number)s is %(state)s; no trainer is at work on it."), run)
    waiting = ControlRequest.objects.filter(
        run=run, attempt=run.attempt, command=command, applied_at=None
    ).first()
    if waiting is not None:
        return waiting
    _note(run, f"run.{command}", actor, after={"step": run.step})
    return _ask(run, command, actor)


def _ask(run: Run, command: Command, actor: User) -> ControlRequest:
    """Leave a command for the supervisor, which looks every second."""
    RunEvent.objects.create(
        run=run, kind="wish", actor=actor.get_username(), cause="user", data={"command": command}
    )
    return ControlRequest.objects.create(run=run, attempt=run.attempt, command=command, actor=actor)


def _move(run: Run, target: RunState, actor: User, cause: str, message: str) -> None:
    """A move that a person makes; it sets the count of idle attempts back."""
    source = run.state
    move(
        run,
        target,
        actor=Actor.PERSON,
        who=actor.get_username(),
        cause=cause,
        message=message,
        columns={"idle_attempts": 0},
    )
    if action := ACTION_OF.get((target, cause)) or ACTION_OF.get((target, "")):
        _note(run, action, actor, before={"state": source}, after={"state": run.state})


def _note(run: Run, action: str, actor: User, **changes: dict[str, Any]) -> None:
    """An entry of the audit log about a run."""
    record(
        action,
        actor=actor,
        kind="run",
        key=run.pk,
        label=f"#{run.number} {run.name}",
        project=run.project,
        **changes,
    )


def _remove_directory(directory: Path) -> None:
    """Out of sight at once, then off the disk: half a directory must not look like a run."""
    if directory.is_dir():
        grave = Path(settings.RUNS_DIR) / f".deleted-{uuid4().hex}"
        directory.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)
