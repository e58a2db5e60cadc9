"""What holds for every address: who is not signed in is sent to sign in, and nothing is inline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from tests.webapp.registry.exports import make_ready
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.datasets import services as datasets
from webapp.runs.models import Checkpoint
from webapp.workers_page.services import WorkerFacts, worker_seen
from webapp.workers_page.views import index as workers_view

OPEN = {"account_login", "account_signup", "account_reset_password", "login_link"}
OURS = ("runs", "rollouts", "datasets", "glass", "registry", "workers", "people", "ui")


def addresses(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(namespace:name, route) of every address."""
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if not route.startswith("admin"):
                yield from addresses(pattern, route)
        elif isinstance(pattern, URLPattern):
            yield pattern.name or "", route


FILLINGS = {
    "<int:number>": "1",
    "<int:pk>": "1",
    "<uuid:run_id>": "6b0f7b1e-0000-4000-8000-000000000000",
    "<uuid:export_id>": "6b0f7b1e-0000-4000-8000-000000000000",
    "<uuid:import_id>": "6b0f7b1e-0000-4000-8000-000000000000",
    "<uuid:glass_id>": "6b0f7b1e-0000-4000-8000-000000000000",
    "<uuid:version_id>": "6b0f7b1e-0000-4000-8000-000000000000",
    "<int:place>": "0",
    "<str:command>": "stop",
    "<str:token>": "x",
    "<slug:slug>": "main",
    "<int:user>": "1",
}


def fill(route: str) -> str:
    for part, value in FILLINGS.items():
        route = route.replace(part, value)
    return "/" + route


ALL = [(name, fill(route)) for name, route in addresses(get_resolver())]
OPEN = (
    "/accounts/",
    "/api/",
    "/live/",
    "/invitation/",
    "/favicon",
    "/ui/language/",
    "/ui/texts.js",
)
PAGES = [
    (name, address) for name, address in ALL if not address.startswith(OPEN) and "^" not in address
]


def test_the_walk_finds_the_addresses() -> None:
    assert {"index", "launch", "detail", "upload", "styleguide"} <= {name for name, _ in PAGES}
    assert len(PAGES) > 20


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "address"), PAGES, ids=[a for _, a in PAGES])
def test_nobody_gets_in_without_signing_in(name: str, address: str, client: Client) -> None:
    for answer in (client.get(address), client.post(address)):
        assert answer.status_code in {302, 401}
        if answer.status_code == 302 and name != "home":
            assert answer.headers["Location"].startswith("/accounts/login/")


@pytest.fixture
def full_house(ada: User) -> None:
    """One of everything."""
    story = Story(launch(ada)).start()
    story.evaluate(0, "start", "base model", 0.04).step(61).rollouts(61).checkpoint(61)
    make_ready(Checkpoint.objects.get(run=story.run), ada, pk=FILLINGS["<uuid:export_id>"])
    story.say("hello\n").phase(62, "rollout", 1, 8)
    job = datasets.store_upload(ada, "a.csv", [b"prompt,answer\n" + b"q,1\n"])
    assert job.state == "uploaded"
    now = timezone.now()
    worker_seen(
        WorkerFacts(
            name="train@host-a",
            boot="b",
            host="host-a",
            pid=1,
            queues=("train",),
            slots=1,
            devices=("2 CPU cores",),
            versions={},
            started_at=now,
            consuming_at=now,
            busy_run=story.run.pk,
        )
    )


@pytest.mark.parametrize(("name", "address"), PAGES, ids=[a for _, a in PAGES])
def test_every_page_answers_without_inline_code(
    name: str, address: str, browser: Client, full_house: None
) -> None:
    answer = browser.get(address)
    assert answer.status_code in {200, 302, 403, 404, 405}
    if "text/html" in answer.headers.get("Content-Type", "") and "report" not in address:
        assert_sound(answer.content.decode())


@pytest.mark.parametrize(
    ("name", "address"),
    [(name, address) for name, address in PAGES if re.match("/(projects|users|audit)/", address)],
)
def test_pages_of_people_answer_a_superuser_without_inline_code(
    name: str, address: str, client: Client, full_house: None
) -> None:
    client.force_login(User.objects.create_superuser("root"))
    answer = client.get(address)
    assert answer.status_code in {200, 404, 405}
    if "text/html" in answer.headers.get("Content-Type", ""):
        assert_sound(answer.content.decode())


def assert_sound(html: str) -> None:
    """No code in the page, each id once, one title, every control with a name."""
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"<[^>]+\sstyle=", html)
    assert not re.search(r"<[^>]+\son[a-z]+=", html)
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert sorted(set(ids)) == sorted(ids), "an id stands twice"
    assert html.count("<h1") == (1 if "<html" in html else html.count("<h1"))
    assert list(unlabelled(html)) == []


def test_a_request_that_is_too_large_has_a_page(browser: Client, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 10
    answer = browser.post("/runs/new/check/", {f"x{i}": "1" for i in range(20)})
    assert answer.status_code == 400
    assert "could not read that request" in answer.content.decode()


def test_a_fault_of_ours_has_a_page(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    browser.raise_request_exception = False
    monkeypatch.setattr(workers_view, "read_workers", lambda _: 1 / 0)
    answer = browser.get("/workers/")
    assert answer.status_code == 500
    assert "Something broke on the server" in answer.content.decode()


def test_a_form_without_its_token_has_a_page(ada: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    answer = strict.post("/runs/new/", {"action": "launch"})
    assert answer.status_code == 403
    assert "This form was too old" in answer.content.decode()


def unlabelled(html: str) -> Iterator[str]:
    """Controls that a screen reader could not name."""
    for tag in re.findall(r"<(?:input|select|textarea)\b[^>]*>", html):
        own_id = re.search(r'\sid="([^"]+)"', tag)
        if 'type="hidden"' in tag or "aria-label" in tag:
            continue
        if own_id and f'for="{own_id[1]}"' in html:
            continue
        if not _is_inside_label(html, tag):
            yield tag


def _is_inside_label(html: str, tag: str) -> bool:
    """Whether a control without an id stands inside its label."""
    before = html[: html.index(tag)]
    return before.rfind("<label") > before.rfind("</label>")
