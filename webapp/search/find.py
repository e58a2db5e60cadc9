"""One search through everything that somebody may see, in groups, the best group first.

Called by the search view. With nothing typed it answers with what was opened lately, with what can
be done here, and with the newest runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.urls import Resolver404, resolve

from webapp.accounts.models import User
from webapp.datasets.access import datasets_for
from webapp.runs.models import Run
from webapp.search import places, things
from webapp.search.hits import Hit, HitGroup
from webapp.search.matching import rank, words_of

MOST_RECENT = 6
MOST_PATHS = 20
SHOWN = 8


def find_everything(
    user: User, query: str, here: str = "", recent: Sequence[str] = ()
) -> list[HitGroup]:
    """What fits the query. `here` is the path of the page, `recent` are paths opened lately."""
    words = words_of(query)
    if not words:
        return _without_words(user, here, recent)
    number = _run_number(here)
    numbers = [int(word.lstrip("#")) for word in words if things.NUMBER.fullmatch(word)]
    rest = [word for word in words if not things.NUMBER.fullmatch(word)]
    tabs = things.find_tabs(user, numbers[0] if numbers else number) if rest or numbers else []
    if numbers and not rest:
        tabs = [hit._replace(rank=0.7) for hit in tabs]
    else:
        tabs = _fitting(rest, tabs)
    groups = [
        HitGroup("runs", "Runs", things.find_runs(user, words)),
        HitGroup("deeds", "Do", _fitting(words, places.deeds())),
        HitGroup("pages", "Pages", _fitting(words, places.pages(user))),
        HitGroup("this-run", f"Run #{numbers[0] if numbers else number}", tabs),
        HitGroup("datasets", "Datasets", things.find_datasets(user, words)),
        HitGroup("imports", "Your imports to finish", things.find_imports(user, words)),
        HitGroup("presets", "Presets", _fitting(words, places.presets())),
    ]
    return sorted((group for group in groups if group.hits), key=lambda group: -group.rank)


def _without_words(user: User, here: str, recent: Sequence[str]) -> list[HitGroup]:
    """What one is likely to want next."""
    number = _run_number(here)
    lately = _recent(user, here, recent)
    known = {hit.url for hit in lately}
    newest = [hit for hit in things.find_runs(user, ()) if hit.url not in known]
    groups = [
        HitGroup("recent", "Recent", lately),
        HitGroup("this-run", f"Run #{number}", things.find_tabs(user, number) if number else []),
        HitGroup("imports", "Your imports to finish", things.find_imports(user, ())),
        HitGroup("deeds", "Do", places.deeds()),
        HitGroup("pages", "Pages", places.pages(user)),
        HitGroup("runs", "Newest runs", newest),
    ]
    return [group for group in groups if group.hits]


def _fitting(words: Sequence[str], hits: Sequence[Hit]) -> list[Hit]:
    """Those of a short list that fit, the best first."""
    ranked = [(rank(words, hit.title, hit.beside), hit) for hit in hits]
    found = [hit._replace(rank=value) for value, hit in ranked if value is not None]
    return sorted(found, key=lambda hit: -hit.rank)[:SHOWN]


def _recent(user: User, here: str, paths: Sequence[str]) -> list[Hit]:
    """Things behind paths that were opened lately and that the user still may see."""
    wanted = list(dict.fromkeys(_thing(path) for path in paths[:MOST_PATHS]))
    numbers = [key for kind, key in wanted if kind == "runs"]
    keys = [key for kind, key in wanted if kind == "datasets"]
    runs = Run.objects.visible_to(user).select_related("owner").filter(number__in=numbers)
    sets = datasets_for(user).select_related("owner").filter(pk__in=keys)
    found = {("runs", run.number): things.run_hit(run) for run in runs.defer("spec", "pace")}
    found |= {("datasets", each.pk): things.dataset_hit(each) for each in sets}
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
    is_known = match.namespace in {"runs", "datasets"} and isinstance(key, int)
    return (match.namespace, key) if is_known and key < 2**31 else ("", 0)


def _run_number(path: str) -> int:
    """Number of the run whose page is open; 0 elsewhere."""
    match = re.match(r"/runs/([0-9]{1,9})/", path)
    return int(match[1]) if match else 0
