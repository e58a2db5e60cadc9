"""What the home page says: what runs now, what needs a person, what came out lately.

Called by its view. Only what the user may see, narrowed to the project that they look at, and of
everything only the newest: each part leads to the page that has all of it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from training_core.contract.tasknames import QUEUE_CPU, QUEUE_TRAIN
from webapp.accounts.models import Project, User
from webapp.datasets.access import own_imports
from webapp.datasets.models import DatasetImport
from webapp.home.said import Said, read_said
from webapp.runs.changed import ENDED_WELL, Statement, ends, solved, statements_of
from webapp.runs.models import Run, RunQuerySet
from webapp.runs.overview import PhaseView, eval_cards, phase_view, spec_of
from webapp.runs.status import LIVE, RunState
from webapp.runs.told import told
from webapp.ui.wording import format_number, state_look
from webapp.workers_page.overview import WorkersView, read_workers

LISTED = 6
RESULTS = 4
LATELY = timedelta(days=7)


class Running(NamedTuple):
    """A run that is at work or waits."""

    run: Run
    phase: PhaseView | None


class Trouble(NamedTuple):
    """Something that a person should look at."""

    title: str
    words: str
    """What happened, in a sentence."""
    url: str
    tone: str
    """bad or warn."""


class Result(NamedTuple):
    """What a run came to."""

    run: Run
    sentence: str
    """`Solves 55 of 100 held-out items`; empty without an evaluation."""
    statement: Statement | None


class Home(NamedTuple):
    """The page."""

    running: list[Running]
    running_total: int
    troubles: list[Trouble]
    results: list[Result]
    said: list[Said]
    imports: list[DatasetImport]
    has_runs: bool


def read_home(user: User, project: Project | None = None) -> Home:
    """Everything that the page shows; of one project, or of all that the user may see."""
    runs = Run.objects.visible_to(user).unarchived().select_related("owner", "project")
    mine = own_imports(user).filter(owner=user).exclude(state=DatasetImport.State.DONE)
    if project is not None:
        runs, mine = runs.filter(project=project), mine.filter(project=project)
    active = runs.filter(state__in=[*LIVE, RunState.QUEUED]).defer("spec")
    ended = runs.filter(state__in=ENDED_WELL).order_by("-finished_at", "-number")
    workers, has_runs = read_workers(user), runs.exists()
    return Home(
        running=[Running(run, phase_view(run.phase)) for run in _busy_first(active)],
        running_total=active.count(),
        troubles=[*_worker_troubles(workers, has_runs), *_failed(runs), *_rejected(mine)],
        results=[_result(run) for run in ended[:RESULTS]],
        said=read_said(user, project),
        imports=list(mine.exclude(state=DatasetImport.State.REJECTED)[:LISTED]),
        has_runs=has_runs,
    )


def _busy_first(active: RunQuerySet) -> list[Run]:
    """Those at work, then those that wait, each the oldest first."""
    found = sorted(active.order_by("queued_at")[: 4 * LISTED], key=lambda run: not run.is_live)
    return found[:LISTED]


def _worker_troubles(workers: WorkersView, has_runs: bool) -> list[Trouble]:
    """Queues that nobody listens on, and workers that fell silent with a run. On a new installation
    the first steps speak of the worker that is still to come."""
    if workers.is_empty and not has_runs:
        return []
    url = reverse("workers:index")
    words = {
        QUEUE_TRAIN: _("Runs wait until one starts."),
        QUEUE_CPU: _("Imports wait, and runs that are lost are not found."),
    }
    found = [
        Trouble(
            _("No worker listens on the queue %(queue)s") % {"queue": queue.name},
            words[queue.name],
            url,
            "warn",
        )
        for queue in workers.queues
        if not queue.workers and queue.name in words
    ]
    for view in workers.workers:
        if view.state in {"silent", "deaf"} and view.run is not None:
            values = {"worker": view.worker.name, "state": state_look(view.state).label}
            title = _("%(worker)s is %(state)s") % values
            found.append(Trouble(title, view.words, url, "warn"))
    return found


def _failed(runs: RunQuerySet) -> list[Trouble]:
    """Runs that failed within a week, or whose worker is silent now."""
    since = timezone.now() - LATELY
    failed = runs.filter(state=RunState.FAILED, finished_at__gte=since).order_by("-finished_at")
    lost = runs.filter(state=RunState.LOST).order_by("-number")
    tones = {RunState.FAILED.value: "bad", RunState.LOST.value: "warn"}
    return [
        Trouble(
            f"#{run.number} {run.name}",
            f"{told(run.message)} {told(run.advice)}".strip()
            or _("It is %(state)s.") % {"state": state_look(run.state).label},
            reverse("runs:detail", args=[run.number]),
            tones[run.state],
        )
        for run in [*lost.defer("spec")[:LISTED], *failed.defer("spec")[:LISTED]]
    ]


def _rejected(mine: QuerySet[DatasetImport]) -> list[Trouble]:
    """The user's own imports that were rejected within a week."""
    since = timezone.now() - LATELY
    rejected = mine.filter(state=DatasetImport.State.REJECTED, created_at__gte=since)
    return [
        Trouble(
            _("Import of %(name)s") % {"name": job.name or job.file_name},
            job.message,
            reverse("datasets:import", args=[job.pk]),
            "bad",
        )
        for job in rejected.order_by("-created_at")[:LISTED]
    ]


def _result(run: Run) -> Result:
    """The last evaluation of a run that ended, with what may be claimed."""
    before, after = ends(eval_cards(run))
    if after is None:
        return Result(run, "", None)
    values = {"now": format_number(solved(after)), "total": f"{after.overall.pass_at_1.n:,}"}
    if before is None:
        sentence = _("Solves %(now)s of %(total)s held-out items.") % values
    else:
        values["before"] = format_number(solved(before))
        sentence = _("Solves %(now)s of %(total)s held-out items; %(before)s before.") % values
    statements = statements_of(after, spec_of(run))
    return Result(run, sentence, statements[0] if statements else None)
