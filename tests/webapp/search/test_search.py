"""The search: what it finds, in which order, and for whom."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from django.test import Client

from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.datasets import services as datasets
from webapp.runs.models import Run
from webapp.search.find import find_everything
from webapp.search.hits import Hit, HitGroup

pytestmark = pytest.mark.django_db


def by_slug(groups: list[HitGroup]) -> dict[str, list[Hit]]:
    return {group.slug: group.hits for group in groups}


def titles(groups: list[HitGroup], slug: str) -> list[str]:
    return [hit.title for hit in by_slug(groups).get(slug, [])]


def test_a_run_is_found_by_number_name_state_owner_and_preset(ada: User) -> None:
    launch(ada, "Longer warm-up")
    Story(launch(ada, "Shuffled control")).start().finish("failed", "bad_model", "No model.")
    for query, name in (
        ("#2", "Shuffled control"),
        ("1", "Longer warm-up"),
        ("warm", "Longer warm-up"),
        ("failed", "Shuffled control"),
        ("shuffled failed", "Shuffled control"),
    ):
        assert titles(find_everything(ada, query), "runs")[0] == name, query
    assert len(titles(find_everything(ada, "ada"), "runs")) == 2
    assert len(titles(find_everything(ada, "tiny"), "runs")) == 2


def test_the_run_of_a_number_comes_before_names_that_hold_it(ada: User) -> None:
    for name in ("Seed 3", "Plain", "Third", "Seed 3 again"):
        launch(ada, name)
    assert titles(find_everything(ada, "3"), "runs")[0] == "Third"


def test_a_slip_of_the_fingers_is_forgiven(ada: User) -> None:
    launch(ada, "Teach SmolLM2 to multiply")
    launch(ada, "Another one")
    assert titles(find_everything(ada, "mutliply"), "runs") == ["Teach SmolLM2 to multiply"]
    assert titles(find_everything(ada, "qqqqqqqq"), "runs") == []


def test_a_number_with_a_word_leads_to_a_tab_of_that_run(ada: User) -> None:
    launch(ada)
    launch(ada)
    groups = find_everything(ada, "2 logs")
    assert by_slug(groups)["this-run"][0].url == "/runs/2/logs/"
    assert groups[0].slug == "this-run"


def test_on_a_run_its_tabs_and_commands_come_up(ada: User, bob: User) -> None:
    Story(launch(ada, "Mine")).start()
    here = "/runs/1/rollouts/"
    assert "Stop #1 Mine" in titles(find_everything(ada, "", here), "this-run")
    assert titles(find_everything(ada, "stop", here), "this-run")[0] == "Stop #1 Mine"
    assert "Stop #1 Mine" not in titles(find_everything(bob, "", here), "this-run")
    assert "Curves of #1" in titles(find_everything(bob, "", here), "this-run")


def test_recent_things_come_first_without_what_is_gone_or_open(ada: User) -> None:
    for name in ("One", "Two", "Three"):
        launch(ada, name)
    Run.objects.get(number=2).delete()
    paths = ["/runs/1/", "/runs/3/", "/runs/2/", "/nowhere/", "/runs/99999999999999/", "x\0"]
    groups = find_everything(ada, "", "/runs/3/logs/", paths)
    assert groups[0].slug == "recent"
    assert titles(groups, "recent") == ["One"]
    assert "One" not in titles(groups, "runs")


def test_datasets_and_own_imports_are_found(ada: User, bob: User) -> None:
    job = datasets.store_upload(ada, "sums.jsonl", [b'{"prompt": "1+1?", "answer": 2}\n'])
    assert titles(find_everything(ada, ""), "imports") == ["sums.jsonl"]
    assert titles(find_everything(ada, "sums"), "imports") == ["sums.jsonl"]
    assert titles(find_everything(ada, "other"), "imports") == []
    assert titles(find_everything(bob, "sums"), "imports") == []
    assert by_slug(find_everything(ada, "sums"))["imports"][0].url.endswith(f"{job.pk}/")


def test_deeds_pages_and_presets_are_found_by_what_they_are_for(ada: User) -> None:
    assert titles(find_everything(ada, "dark"), "deeds") == ["Switch the colour theme"]
    assert titles(find_everything(ada, "csv"), "deeds") == ["Upload a dataset"]
    assert titles(find_everything(ada, "workers"), "pages") == ["Workers"]
    assert titles(find_everything(ada, "smollm2"), "presets") == ["Teach SmolLM2 to add"]
    assert titles(find_everything(ada, "admin"), "pages") == []
    ada.is_staff = True
    assert titles(find_everything(ada, "admin"), "pages") == ["Admin"]


def test_the_fragment_is_a_list_of_options(browser: Client, ada: User) -> None:
    launch(ada, "Longer warm-up")
    answer = browser.get("/search/?q=warm", headers={"HX-Request": "true"})
    html = answer.content.decode()
    assert "<html" not in html
    assert 'role="listbox"' in html
    options = re.findall(r'<a [^>]*role="option"[^>]*href="([^"]+)"', html)
    assert options[0] == "/runs/1/"
    assert answer.headers["Cache-Control"].count("no-store")


def test_nothing_found_says_what_is_searched(browser: Client) -> None:
    html = browser.get("/search/?q=zzzzzzz", headers={"HX-Request": "true"}).content.decode()
    assert "Nothing found for “zzzzzzz”" in html
    assert 'data-count="0"' in html
    assert "Nothing found" in browser.get("/search/?q=zzzzzzz").content.decode()


@pytest.mark.parametrize("text", [*NAMES, "a\0b", "/runs/1/%00/"])
def test_any_query_and_any_name_are_shown_as_text(text: str, browser: Client, ada: User) -> None:
    name = text.replace("\0", "")
    Run.objects.filter(pk=launch(ada).pk).update(name=name)
    for wanted in (text, name[:5], ""):
        address = "/search/?" + urlencode({"q": wanted, "here": text, "recent": text})
        for headers in ({}, {"HX-Request": "true"}):
            answer = browser.get(address, headers=headers)
            assert answer.status_code == 200
            html = answer.content.decode()
            assert [mark for mark in RAW_MARKUP if mark in html] == []
