"""The search: what it finds, in which order, and for whom."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from django.http import HttpRequest
from django.test import Client

from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.members import become
from tests.webapp.stories import Story, launch
from webapp.accounts.models import Project, Role, User
from webapp.datasets import services as datasets
from webapp.datasets.models import Dataset
from webapp.runs.models import Run
from webapp.search.find import find_everything
from webapp.search.hits import Hit, HitGroup
from webapp.ui.projects import Standing

pytestmark = pytest.mark.django_db


def seek(
    user: User, query: str, here: str = "", recent: tuple[str, ...] | list[str] = ()
) -> list[HitGroup]:
    """What a request of the user's finds."""
    request = HttpRequest()
    request.user, request.session = user, {}
    return find_everything(user, Standing(request), query, here, recent)


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
        assert titles(seek(ada, query), "runs")[0] == name, query
    assert len(titles(seek(ada, "ada"), "runs")) == 2
    assert len(titles(seek(ada, "tiny"), "runs")) == 2


def test_the_run_of_a_number_comes_before_names_that_hold_it(ada: User) -> None:
    for name in ("Seed 3", "Plain", "Third", "Seed 3 again"):
        launch(ada, name)
    assert titles(seek(ada, "3"), "runs")[0] == "Third"


def test_a_slip_of_the_fingers_is_forgiven(ada: User) -> None:
    launch(ada, "Teach SmolLM2 to multiply")
    launch(ada, "Another one")
    assert titles(seek(ada, "mutliply"), "runs") == ["Teach SmolLM2 to multiply"]
    assert titles(seek(ada, "qqqqqqqq"), "runs") == []


def test_a_number_with_a_word_leads_to_a_tab_of_that_run(ada: User) -> None:
    launch(ada)
    launch(ada)
    groups = seek(ada, "2 logs")
    assert by_slug(groups)["this-run"][0].url == "/runs/2/logs/"
    assert groups[0].slug == "this-run"


def test_on_a_run_its_tabs_and_commands_come_up(ada: User, bob: User) -> None:
    Story(launch(ada, "Mine")).start()
    here = "/runs/1/rollouts/"
    assert "Stop #1 Mine" in titles(seek(ada, "", here), "this-run")
    assert titles(seek(ada, "stop", here), "this-run")[0] == "Stop #1 Mine"
    assert "Stop #1 Mine" not in titles(seek(bob, "", here), "this-run")
    assert "Curves of #1" in titles(seek(bob, "", here), "this-run")


def test_recent_things_come_first_without_what_is_gone_or_open(ada: User) -> None:
    for name in ("One", "Two", "Three"):
        launch(ada, name)
    Run.objects.get(number=2).delete()
    paths = ["/runs/1/", "/runs/3/", "/runs/2/", "/nowhere/", "/runs/99999999999999/", "x\0"]
    groups = seek(ada, "", "/runs/3/logs/", paths)
    assert groups[0].slug == "recent"
    assert titles(groups, "recent") == ["One"]
    assert "One" not in titles(groups, "runs")


def test_datasets_and_own_imports_are_found(ada: User, bob: User) -> None:
    job = datasets.store_upload(ada, "sums.jsonl", [b'{"prompt": "1+1?", "answer": 2}\n'])
    assert titles(seek(ada, ""), "imports") == ["sums.jsonl"]
    assert titles(seek(ada, "sums"), "imports") == ["sums.jsonl"]
    assert titles(seek(ada, "other"), "imports") == []
    assert titles(seek(bob, "sums"), "imports") == []
    assert by_slug(seek(ada, "sums"))["imports"][0].url.endswith(f"{job.pk}/")


def test_deeds_pages_and_presets_are_found_by_what_they_are_for(ada: User) -> None:
    assert titles(seek(ada, "dark"), "deeds") == ["Switch the colour theme"]
    assert titles(seek(ada, "csv"), "deeds") == ["Upload a dataset"]
    assert titles(seek(ada, "workers"), "pages") == ["Workers"]
    assert titles(seek(ada, "smollm2"), "presets") == ["Teach SmolLM2 to add"]
    assert titles(seek(ada, "admin"), "pages") == []
    ada.is_staff = True
    assert titles(seek(ada, "admin"), "pages") == ["Admin"]


def test_another_project_is_found_by_its_members_alone(ada: User, bob: User) -> None:
    other = Project.objects.create(slug="other", name="Other work")
    secret = launch(bob, "Secret sums")
    become(bob, Role.RESEARCHER, other)
    Run.objects.filter(pk=secret.pk).update(project=other)
    Dataset.objects.create(name="secret rows", owner=bob, project=other)
    here = f"/runs/{secret.number}/"
    for query in ("secret", "sercet", str(secret.number), "queued", "bob", "other", ""):
        found = seek(ada, query, here, [here, "/datasets/1/"])
        assert "ecret" not in repr([group.hits for group in found]), query
        assert "Other" not in repr(found), query
    found = by_slug(seek(bob, "secret"))
    assert [hit.detail for hit in found["runs"]] == [f"#{secret.number}, bob in Other work"]
    assert [hit.detail for hit in found["datasets"]] == ["dataset, bob in Other work"]
    assert by_slug(seek(bob, "other"))["projects"][0].url == "/runs/?project=other"
    assert seek(bob, "", "", [here])[0].slug == "recent"


def test_an_outsider_finds_nothing_of_any_project(ada: User, bob: User, browser: Client) -> None:
    secret = launch(bob, "Secret sums")
    Story(secret).start()
    Dataset.objects.create(name="secret rows", owner=bob, project=Project.objects.main())
    datasets.store_upload(bob, "secret.jsonl", [b'{"prompt": "1+1?", "answer": 2}\n'])
    become(ada, None)
    here = f"/runs/{secret.number}/"
    for query in ("secret", "sercet", f"#{secret.number}", "running", "bob", "main", "tiny", ""):
        asked = {"q": query, "here": here, "recent": [here, "/datasets/1/"]}
        answer = browser.get("/search/", asked, headers={"HX-Request": "true"})
        html = answer.content.decode().replace(f"“{query}”", "")
        for hidden in ("ecret", here, "bob", "Main", "preset"):
            assert hidden not in html, (query, hidden)
    assert {group.slug for group in seek(ada, "", here, [here])} == {"deeds", "pages"}


def test_nothing_is_offered_that_one_may_not_do(ada: User, bob: User) -> None:
    launch(ada)
    become(bob, Role.VIEWER)
    for query in ("", "new run", "upload", "csv", "tiny", "clone", "stop", "invitations", "1"):
        found = [hit for group in seek(bob, query, "/runs/1/") for hit in group.hits]
        addresses = " ".join(hit.url for hit in found)
        for closed in ("/runs/new/", "/upload/", "/control/", "/invitations/", "/users/"):
            assert closed not in addresses, query
    become(bob, Role.ADMIN)
    assert titles(seek(bob, "invitations"), "pages") == ["Invitations to Main"]
    assert titles(seek(bob, "stop", "/runs/1/"), "this-run")[0].startswith("Stop #1")


def test_every_hit_can_be_opened(ada: User, browser: Client) -> None:
    become(ada, Role.ADMIN)
    ada.is_superuser = ada.is_staff = True
    ada.save()
    Story(launch(ada, "Mine")).start().finish("succeeded", "done", "Done.")
    Project.objects.create(slug="other", name="Other work")
    words = ("", "o", "e", "a", "1", "settings", "audit", "invitations", "preset")
    found = {
        hit.url for word in words for group in seek(ada, word, "/runs/1/") for hit in group.hits
    }
    assert len(found) > 25
    for url in found - {""}:
        answer = browser.get(url)
        assert answer.status_code in {200, 302}, url


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
