"""Prose that turns red when it lies."""

from __future__ import annotations

import re

from tests.architecture.sources import ROOT, python_files, relative
from training_core.contract.metrics import METRICS

TOUR = ROOT / "docs" / "tour-of-a-run.md"
STOP = re.compile(r"^\| (\d+\w?) \|.*\| `([^`]+)` \| `([^`]+)` \|$")


def test_every_stop_of_the_tour_exists() -> None:
    stops = [m for line in TOUR.read_text().splitlines() if (m := STOP.match(line))]
    assert len(stops) == 20
    for number, file, name in (stop.groups() for stop in stops):
        text = (ROOT / file).read_text()
        pattern = rf"(def|class|function|async function) {name}\b" if file.endswith(".py") else name
        assert re.search(pattern, text), f"stop {number}: {file} has no {name}"


def test_the_tour_names_no_missing_file() -> None:
    named = re.findall(
        r"`((?:webapp|workers|training_core|static|templates)/[\w/.-]+)`", TOUR.read_text()
    )
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []


def test_readme_leads_with_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert 0 <= readme.index("make run") < readme.index("make test") < 900


def test_readme_tree_matches_the_tree() -> None:
    tree = re.search(r"```\n(webapp/.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert tree
    folder = ""
    for line in tree[1].splitlines():
        name = line.split()[0]
        if not line.startswith(" "):
            folder = name
            assert (ROOT / name).exists(), name
        else:
            assert (ROOT / folder / name).exists(), f"{folder}{name}"


def test_the_decisions_are_all_in_their_index() -> None:
    index = (ROOT / "docs/adr/README.md").read_text()
    pages = sorted(p.name for p in (ROOT / "docs/adr").glob("0*.md"))
    assert len(pages) >= 12
    assert [name for name in pages if f"({name})" not in index] == []


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    lines = [f"| `{m.name}` | {m.unit or '—'} | {m.direction} | {m.meaning} |" for m in METRICS]
    assert [line for line in lines if line not in page] == []


def test_banned_words_are_not_names() -> None:
    """One noun for each thing: the glossary's synonyms are no identifiers."""
    banned = re.compile(r"\b(?:def|class) \w*(?:[Ee]pisode|[Tt]rajector)\w*")
    found = [
        f"{relative(p)}: {m[0]}"
        for p in python_files("webapp", "training_core", "workers")
        for m in banned.finditer(p.read_text())
    ]
    assert found == []


def test_the_contributing_guide_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:webapp|training_core|docs|templates)/[\w/.-]+\.(?:py|md))`", text)
    assert [n for n in named if not re.search("NAME|APP", n) and not (ROOT / n).exists()] == []
