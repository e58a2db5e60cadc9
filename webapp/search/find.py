"""One search through everything that somebody may see, in groups, the best group first.

Called by the search view. With nothing typed it answers with what was opened lately, with what can
be done here, and with the newest runs. It looks through all projects that one may see, whichever of
them the pages are narrowed to; deeds are those of the one that is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from webapp.accounts.models import User
from webapp.datasets.access import datasets_for
from webapp.runs.models import Run
from webapp.search import places, things
from webapp.search.hits import Hit, HitGroup
from webapp.search.matching import rank, words_of
from webapp.ui.projects import Standing

MOST_RECENT = 6
MOST_PATHS = 20
SHOWN = 8
BELOW_ITS_RUN = 0.7
"""Rank of a run's tabs where only its number was typed."""


def find_everything(
    user: User, standing: Standing, query: str, here: str = "", recent: Sequence[str] = ()
) -> list[HitGroup]:
    """What fits the query. `here` is the path of the page, `recent` are paths opened lately."""
    words = words_of(query)
    if not words:
        return _without_words(user, standing, here, recent)
    numbers = [int(word.lstrip("#")) for word in words if things.NUMBER.fullmatch(word)]
    rest = [word for word in words if not things.NUMBER.fullmatch(word)]
    number = numbers[0] if numbers else _run_number(here)
    tabs = things.find_tabs(user, standing, number)
    tabs = _fitting(rest, tabs) if rest else [hit._replace(rank=BELOW_ITS_RUN) for hit in tabs]
    named = _must_name_projects(standing)
    groups = [
        HitGroup("runs", _("Runs"), things.find_runs(user, words, named)),
        HitGroup("deeds", _("Do"), _fitting(words, places.deeds(standing))),
        HitGroup(
            "pages", pgettext("of the site", "Pages"), _fitting(words, places.pages(user, standing))
        ),
        HitGroup("projects", _("Projects"), _fitting(words, places.projects(standing))),
        HitGroup("this-run", _run_title(number), tabs),
        HitGroup("datasets", _("Datasets"), things.find_datasets(user, words, named)),
        HitGroup("imports", _("Your imports to finish"), things.find_imports(user, words)),
        HitGroup("presets", _("Presets"), _fitting(words, places.presets(standing))),
    ]
    return sorted((group for group in groups if group.hits), key=lambda group: -group.rank)


def _without_words(
    user: User, standing: Standing, here: str, recent: Sequence[str]
) -> list[HitGroup]:
    """What one is likely to want next."""
    number, named = _run_number(here), _must_name_projects(standing)
    lately = _recent(user, here, recent, named)
    known = {hit.url for hit in lately}
    newest = [hit for hit in things.find_runs(user, (), named) if hit.url not in known]
    groups = [
        HitGroup("recent", _("Recent"), lately),
        HitGroup("this-run", _run_title(number), things.find_tabs(user, standing, number)),
        HitGroup("imports", _("Your imports to finish"), things.find_imports(user, ())),
        HitGroup("deeds", _("Do"), places.deeds(standing)),
        HitGroup("pages", _pages_title(), places.main_pages()),
        HitGroup("runs", _("Newest runs"), newest),
    ]
    return [group for group in groups if group.hits]


def _must_name_projects(standing: Standing) -> bool:
    """Whether things of several projects may stand side by side, whichever is looked at."""
    return len(standing.projects) > 1


def _fitting(words: Sequence[str], hits: Sequence[Hit]) -> list[Hit]:
    """Those of a short list that fit, the best first."""
    ranked = [(rank(words, hit.title, hit.beside), hit) for hit in hits]
    found = [hit._replace(rank=value) for value, hit in ranked if value is not None]
    return sorted(found, key=lambda hit: -hit.rank)[:SHOWN]


def _recent(user: User, here: str, paths: Sequence[str], named: bool) -> list[Hit]:
    """Things behind paths that were opened lately and that the user still may see."""
    wanted = list(dict.fromkeys(_thing(path) for path in paths[:MOST_PATHS]))
    numbers = [key for kind, key in wanted if kind == "runs"]
    keys = [key for kind, key in wanted if kind == "datasets"]
    runs = Run.objects.visible_to(user).select_related("owner", "project")
    sets = datasets_for(user).select_related("owner", "project").filter(pk__in=keys)
    found = {
        ("runs", run.number): things.run_hit(run, named)
        for run in runs.filter(number__in=numbers).defer("spec", "pace")
    }
    found |= {("datasets", each.pk): things.dataset_hit(each, named) for each in sets}
    own = _thing(here)
    hits = [found[thing] for thing in wanted if thing in found and thing != own]
    return hits[:MOST_RECENT]


def _thing(path: str) -> tuple[str, int]:
    """("runs", number) or ("datasets", key) behind a path; ("", 0) for anything else."""
    try:
        match = resolve(path)
    except Resolver404:
        return "", 0
    key = match.kwargs.get("number" if match.namespace == "runs" else "pk")
    if match.namespace in {"runs", "datasets"} and isinstance(key, int) and key < 2**31:
        return match.namespace, key
    return "", 0


def _pages_title() -> str:
    """The label of the group of pages."""
    return pgettext("of the site", "Pages")


def _run_title(number: int) -> str:
    """The label of the group about one run."""
    return _("Run #%(number)s") % {"number": number}


def _run_number(path: str) -> int:
    """Number of the run whose page is open; 0 elsewhere."""
    match = re.match(r"/runs/([0-9]{1,9})/", path)
    return int(match[1]) if match else 0
