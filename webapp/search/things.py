"""Runs, datasets and imports that somebody may see, as hits.

Called by `webapp.search.find`. The database narrows down by parts of names, newest first; ranking
is `matching.rank`, as for pages. A slip of the fingers is forgiven by trigrams, when hardly
anything fits the letters as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from django.contrib.postgres.search import TrigramWordSimilarity
from django.db.models import Model, Q, QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.accounts.models import Project, User
from webapp.datasets.access import datasets_for, own_imports
from webapp.datasets.models import Dataset, DatasetImport
from webapp.runs.access import steering_right
from webapp.runs.models import Run
from webapp.runs.steering import COMMANDS
from webapp.search.hits import Hit
from webapp.search.matching import ABBREVIATED, WHOLE, fold, rank
from webapp.ui.projects import Standing
from webapp.ui.wording import STATES, state_look

M = TypeVar("M", bound=Model)

NARROWED = 60
"""Rows of a kind that are ranked: the newest that hold all the words."""
SHOWN = 8
FEW = 3
ALIKE = 0.35
"""Least word similarity of a name that is not spelt as typed: two letters of eight that changed
places leave 0.38."""
LONG_ENOUGH = 4
NUMBER = re.compile(r"#?([0-9]{1,9})")
TABS = (
    (gettext_lazy("Curves"), "runs:detail", "runs"),
    (gettext_lazy("Rollouts"), "runs:rollouts", "search"),
    (gettext_lazy("Config"), "runs:config", "file"),
    (gettext_lazy("Logs"), "runs:logs", "file"),
    (gettext_lazy("Checkpoints"), "runs:checkpoints", "save"),
    (gettext_lazy("Comments"), "comments:thread", "comment"),
)


def find_runs(user: User, words: Sequence[str], named: bool) -> list[Hit]:
    """Runs by number, name, state, owner or preset; the newest when nothing is typed. `named`
    says whether each hit names its project."""
    runs = Run.objects.visible_to(user).unarchived().select_related("owner", "project")
    runs = runs.order_by("-number").defer("spec", "pace")
    if not words:
        return [run_hit(run, named) for run in runs[: FEW + 2]]
    wanted = Q()
    for word in words:
        wanted &= _run_holds(word)
    hits = _ranked(words, (run_hit(run, named) for run in runs.filter(wanted)[:NARROWED]))
    return _with_alike(hits, words, (run_hit(run, named) for run in _alike(runs, words)))


def find_datasets(user: User, words: Sequence[str], named: bool) -> list[Hit]:
    """Datasets by name or owner."""
    sets = datasets_for(user).select_related("owner", "project").order_by("-pk")
    if not words:
        return []
    wanted = Q()
    for word in words:
        wanted &= Q(name__icontains=word) | Q(owner__username__icontains=word)
    hits = _ranked(words, (dataset_hit(each, named) for each in sets.filter(wanted)[:NARROWED]))
    return _with_alike(hits, words, (dataset_hit(each, named) for each in _alike(sets, words)))


def find_imports(user: User, words: Sequence[str]) -> list[Hit]:
    """The user's own imports that are not done yet."""
    waiting = own_imports(user).filter(owner=user).exclude(state=DatasetImport.State.DONE)
    hits = [import_hit(job) for job in waiting.order_by("-created_at")[:SHOWN]]
    fitting = [hit for hit in hits if rank(words, hit.title, hit.beside) is not None]
    return _ranked(words, fitting) if words else hits


def find_tabs(user: User, standing: Standing, number: int) -> list[Hit]:
    """The tabs of a run and what the user may do with it; nothing where there is no such run."""
    runs = Run.objects.visible_to(user).select_related("project").defer("spec", "pace")
    run = runs.filter(number=number).first() if number else None
    if run is None:
        return []
    name = f"#{run.number} {run.name}"
    hits = [
        Hit(_tab_title(title, run), reverse(view, args=[number]), icon, run.name)
        for title, view, icon in TABS
    ]
    if standing.launches_in:
        clone = f"{reverse('runs:launch')}?from={number}"
        title, beside = _("Clone #%(number)s") % {"number": run.number}, _("copy new run")
        hits.append(Hit(title, clone, "branch", run.name, beside=beside))
    if run.project in standing.where(steering_right(user, run)):
        hits += [_command_hit(run, name, slug) for slug in _possible(run)]
    return hits


def run_hit(run: Run, named: bool) -> Hit:
    """A run that can be opened, with its project's name where that is wanted."""
    return Hit(
        run.name,
        reverse("runs:detail", args=[run.number]),
        "runs",
        f"#{run.number}, {_owner(run.owner, run.project, named)}",
        state=run.state,
        beside=f"{run.number} #{run.number} {run.state} {state_look(run.state).label} "
        f"{run.owner} {run.preset}",
    )


def dataset_hit(dataset: Dataset, named: bool) -> Hit:
    """A dataset that can be opened, with its project's name where that is wanted."""
    url = reverse("datasets:detail", args=[dataset.pk])
    owner = _owner(dataset.owner, dataset.project, named)
    detail = _("dataset, %(owner)s") % {"owner": owner}
    return Hit(dataset.name, url, "data", detail, beside=f"{dataset.owner}")


def import_hit(job: DatasetImport) -> Hit:
    """An import that waits for its owner."""
    url = reverse("datasets:import", args=[job.pk])
    return Hit(job.name or job.file_name, url, "upload", _("your import"), state=job.state)


def _owner(owner: User, project: Project, named: bool) -> str:
    """`ada in Main`, or `ada`."""
    return (
        _("%(owner)s in %(project)s") % {"owner": owner, "project": project}
        if named
        else f"{owner}"
    )


def _tab_title(title: str | Promise, run: Run) -> str:
    """`Curves of #7`."""
    return _("%(tab)s of #%(number)s") % {"tab": title, "number": run.number}


def _run_holds(word: str) -> Q:
    """A word in a run's name, state, owner or preset, or its number."""
    found = Q(name__icontains=word) | Q(state__istartswith=word) | Q(preset__icontains=word)
    found |= Q(state__in=[key for key, look in STATES.items() if fold(str(look.label)) == word])
    found |= Q(owner__username__icontains=word)
    number = NUMBER.fullmatch(word)
    return found | Q(number=int(number[1])) if number else found


def _ranked(words: Sequence[str], hits: Iterable[Hit]) -> list[Hit]:
    """Those that fit, the best first; a run whose number was typed before all others."""
    number = NUMBER.fullmatch(words[0]) if len(words) == 1 else None
    found = []
    for hit in hits:
        value = rank(words, hit.title, hit.beside)
        if number and hit.detail.startswith(f"#{int(number[1])},"):
            value = WHOLE
        found.append(hit._replace(rank=ABBREVIATED if value is None else value))
    return sorted(found, key=lambda hit: -hit.rank)[:SHOWN]


def _with_alike(hits: list[Hit], words: Sequence[str], alike: Iterable[Hit]) -> list[Hit]:
    """A short list, made longer by names that are only nearly spelt so."""
    if len(hits) >= FEW or len(" ".join(words)) < LONG_ENOUGH:
        return hits
    known = {hit.url for hit in hits}
    near = [hit._replace(rank=ABBREVIATED / 2) for hit in alike if hit.url not in known]
    return [*hits, *near]


def _alike(rows: QuerySet[M], words: Sequence[str]) -> Iterable[M]:
    """Rows whose names hold nearly these words."""
    likeness = TrigramWordSimilarity(" ".join(words), "name")
    near = rows.annotate(likeness=likeness).filter(likeness__gte=ALIKE)
    return near.order_by("-likeness")[:FEW]


def _possible(run: Run) -> list[str]:
    """Commands that mean something to the run now."""
    able = {
        "pause": run.can_pause,
        "stop": run.can_stop,
        "resume": run.can_resume,
        "evaluate": run.can_command,
        "checkpoint": run.can_command,
        "delete": run.is_terminal,
    }
    return [slug for slug, is_possible in able.items() if is_possible]


def _command_hit(run: Run, name: str, slug: str) -> Hit:
    """A command of a run; it asks before it acts."""
    command = COMMANDS[slug]
    url = reverse("runs:control", args=[run.number, slug])
    return Hit(f"{command.label} {name}", url, command.icon, asks=True)
