"""The table of runs: rows, filters, search, pages, live rows."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.stories import Story, launch
from training_core.contract.presets import TINY_COPY
from webapp.accounts.models import User
from webapp.runs.listing import PAGE_SIZE
from webapp.runs.models import Run, RunCounter

INDEX = "/runs/"


def make_runs(owner: User, count: int) -> None:
    """Many finished runs, fast."""
    spec = TINY_COPY.spec.model_dump(mode="json")
    RunCounter.objects.update_or_create(pk=1, defaults={"last": count})
    Run.objects.bulk_create(
        Run(
            number=number,
            name=f"run {number}",
            owner=owner,
            spec=spec,
            spec_version=1,
            total_steps=120,
            state="succeeded" if number % 3 else "failed",
        )
        for number in range(1, count + 1)
    )


def numbers(page: str) -> list[int]:
    return [int(part.split('"')[0]) for part in page.split('data-run="')[1:]]


def test_the_first_visit_offers_the_presets(browser: Client) -> None:
    page = browser.get(INDEX).content.decode()
    assert "Launch your first experiment" in page
    assert reverse("runs:launch_preset") in page
    assert "runs-table" in page


def test_a_row_says_what_one_wants_to_know(browser: Client, ada: User) -> None:
    story = Story(launch(ada, "Adds")).start()
    for step in range(61, 65):
        story.step(step)
    story.evaluate(60, "stage_end", "after warm-up", 0.31)
    page = browser.get(INDEX).content.decode()
    assert "Adds" in page
    assert 'data-state="running"' in page
    assert "64/120" in page
    assert "31.0 %" in page
    assert "left" in page
    row = browser.get(reverse("runs:row", args=[story.run.number])).content.decode()
    assert row.strip().startswith("<tr")
    assert row.strip() in page.replace("\n", "\n")


def test_ten_thousand_runs_cost_one_page(browser: Client, ada: User) -> None:
    make_runs(ada, 10_000)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        page = browser.get(INDEX).content.decode()
    assert numbers(page) == list(range(10_000, 10_000 - PAGE_SIZE, -1))
    assert len(queries) <= 6
    assert "10,000" in page
    older = browser.get(f"{INDEX}?before=9951").content.decode()
    assert numbers(older)[0] == 9950
    assert numbers(browser.get(f"{INDEX}?before=40").content.decode()) == list(range(39, 0, -1))


def test_filters_and_search_stand_in_the_address(browser: Client, ada: User, bob: User) -> None:
    make_runs(ada, 9)
    Run.objects.filter(number=5).update(name="Curious case", owner=bob)
    assert numbers(browser.get(f"{INDEX}?state=failed").content.decode()) == [9, 6, 3]
    assert numbers(browser.get(f"{INDEX}?q=CURIOUS").content.decode()) == [5]
    assert numbers(browser.get(f"{INDEX}?q=bob").content.decode()) == [5]
    assert numbers(browser.get(f"{INDEX}?q=%237").content.decode()) == [7]
    assert numbers(browser.get(f"{INDEX}?q=7&state=failed").content.decode()) == []
    page = browser.get(f"{INDEX}?q=zebra").content.decode()
    assert "No run fits" in page


def test_archived_runs_are_put_away(browser: Client, ada: User) -> None:
    make_runs(ada, 3)
    browser.post(reverse("runs:control", args=[2, "archive"]))
    assert numbers(browser.get(INDEX).content.decode()) == [3, 1]
    assert numbers(browser.get(f"{INDEX}?archived=1").content.decode()) == [2]


@pytest.mark.parametrize("query", ["?before=x", "?before=-1", "?state=zebra", "?q=%00", "?x=1"])
def test_nonsense_in_the_address_is_left_out(query: str, browser: Client, ada: User) -> None:
    make_runs(ada, 2)
    assert numbers(browser.get(INDEX + query).content.decode()) == [2, 1]


def test_a_script_gets_the_table_alone(browser: Client, ada: User) -> None:
    make_runs(ada, 2)
    part = browser.get(INDEX, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert numbers(part) == [2, 1]
    whole = browser.get(INDEX, headers={"HX-Request": "true", "HX-History-Restore-Request": "true"})
    assert "<html" in whole.content.decode()


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_are_escaped(name: str, browser: Client, ada: User) -> None:
    run = launch(ada, name)
    for address in (
        INDEX,
        reverse("runs:detail", args=[run.number]),
        reverse("runs:config", args=[run.number]),
        reverse("runs:control", args=[run.number, "stop"]),
    ):
        page = browser.get(address).content.decode()
        assert not [raw for raw in RAW_MARKUP if raw in page], address
