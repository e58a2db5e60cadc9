"""Every address asked by everybody: no view is without a rule about who may use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.webapp.glass.steps import ask as ask_for_step
from tests.webapp.glass.steps import finish
from tests.webapp.registry.exports import make_ready
from tests.webapp.stories import Story, launch
from tests.webapp.url_rules import PEOPLE, RULES
from webapp.accounts.invitations import make_invitation
from webapp.accounts.models import Invitation, Membership, Project, Role, User
from webapp.api.models import ApiToken
from webapp.api.scopes import Scope
from webapp.api.services import create_token
from webapp.comments.models import Comment
from webapp.comments.services import add_comment
from webapp.datasets import services as datasets
from webapp.datasets.models import Dataset, DatasetImport, DatasetVersion
from webapp.glass import dispatch as glass_dispatch
from webapp.glass.models import GlassStep
from webapp.metrics.views import report
from webapp.registry.models import ModelExport
from webapp.runs.models import Checkpoint, Run
from webapp.webhooks.models import Endpoint


class Address(NamedTuple):
    """One pattern of the URL conf."""

    name: str
    """The key of its rule."""
    route: str


def addresses(resolver: URLResolver, prefix: str = "", space: str = "") -> Iterator[Address]:
    """Every pattern, those of the admin and of allauth included."""
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern).lstrip("^")
        if isinstance(pattern, URLResolver):
            inner = pattern.namespace or space
            yield from addresses(pattern, route, inner)
        elif isinstance(pattern, URLPattern):
            own = f"{space}:{pattern.name}" if space else str(pattern.name or route)
            yield Address("admin" if space == "admin" else own, route)


ALL = list(addresses(get_resolver()))
NAMED = {address.name for address in ALL}


class House(NamedTuple):
    """What the addresses name: all of it somebody else's, all of it in the main project."""

    run: Run
    dataset: Dataset
    job: DatasetImport
    invitation: Invitation
    comment: Comment
    export: ModelExport
    glass: GlassStep
    token: ApiToken
    webhook: Endpoint


@pytest.fixture
def house(bob: User, monkeypatch: pytest.MonkeyPatch) -> House:
    """A run with a history, a dataset, an upload that is none yet, and what hangs on them."""
    monkeypatch.setattr(glass_dispatch, "send_task", lambda *_: True)
    story = Story(launch(bob)).start()
    story.evaluate(0, "start", "base model", 0.04).step(61).rollouts(61).checkpoint(61)
    export = make_ready(Checkpoint.objects.get(run=story.run), bob)
    job = datasets.store_upload(bob, "a.csv", [b"prompt,answer\nq,1\n"])
    dataset = Dataset.objects.create(name="sums", owner=bob)
    dataset.versions.create(number=1, state=DatasetVersion.State.READY)
    main = Project.objects.main()
    root = User.objects.create_superuser("root")
    invitation, _ = make_invitation(main, Role.VIEWER, days=7, uses=1, actor=root)
    comment = add_comment(story.run, bob, "Look.")
    glass = finish(ask_for_step(bob))
    token, _ = create_token(bob, "nightly", [Scope.READ])
    webhook = Endpoint.objects.create(user=bob, project=main, url="https://example.org/", kinds=[])
    return House(story.run, dataset, job, invitation, comment, export, glass, token, webhook)


@pytest.fixture
def clients(db: None) -> dict[str, Client]:
    """A browser for each person."""
    found = {person: Client() for person in PEOPLE}
    for person in PEOPLE[1:]:
        user = User.objects.create_user(f"the-{person}")
        Membership.objects.filter(user=user).delete()
        if person != "outsider":
            Membership.objects.create(user=user, project=Project.objects.main(), role=Role(person))
        found[person].force_login(user)
    return found


def test_every_view_has_a_rule() -> None:
    missing = sorted(NAMED - set(RULES))
    assert not missing, (
        f"Nobody has said who may use {', '.join(missing)}: add a line for each to RULES in "
        "tests/webapp/url_rules.py."
    )
    assert not set(RULES) - NAMED, "Rules for views that are no more: take them out of RULES."


def test_every_role_is_asked() -> None:
    assert set(PEOPLE) == {"anonymous", "outsider", *Role.values}


OURS = [address for address in ALL if address.name != "admin"]


def space_of(address: Address) -> str:
    """The part of the site that an address belongs to."""
    return address.name.partition(":")[0]


@pytest.mark.parametrize("space", sorted({space_of(address) for address in OURS}))
def test_who_may_use_it(
    space: str, house: House, clients: dict[str, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The report gives its connection back early, which the transaction of a test does not survive.
    monkeypatch.setattr(report, "connections", SimpleNamespace(close_all=lambda: None))
    wrong = []
    for address in OURS:
        if space_of(address) == space:
            wrong += faults_of(address, house, clients)
    assert not wrong, "\n".join(wrong)


def faults_of(address: Address, house: House, clients: dict[str, Client]) -> list[str]:
    """Answers that the rule of an address does not expect, each in a sentence."""
    rule = RULES[address.name]
    path = fill(address, house)
    query = rule.query.format(run=house.run)
    where = f"{path}?{query}" if query else path
    wrong = []
    for who, client in clients.items():
        for method, got, expected in (
            ("GET", ask(client, where), rule.get[who]),
            ("POST", ask(client, path, rule.body), rule.post[who]),
        ):
            if got != expected:
                found = f"{method} by {who}: {got} instead of {expected}"
                wrong.append(f"{address.name} ({where}): {found}")
    cache.clear()  # limits of attempts count there
    return wrong


def test_no_role_of_a_project_opens_the_site_administration(clients: dict[str, Client]) -> None:
    for address in ALL:
        if address.name != "admin" or "(?P" in address.route:
            continue
        path = re.sub("<[^>]+>", "1", "/" + address.route)
        for who in ("anonymous", "admin"):
            for body in (None, {"x": "1"}):
                status = ask(clients[who], path, body)
                assert status in {302, 403, 404}, f"{path} answers {status} to {who}"


def ask(client: Client, path: str, body: dict[str, str] | None = None) -> int:
    """The status of an answer, posted when there is a body; no trace stays, no cookie either."""
    cookies = deepcopy(client.cookies)
    with transaction.atomic():
        answer = client.get(path) if body is None else client.post(path, body)
        transaction.set_rollback(True)
    client.cookies = cookies
    return answer.status_code


def fill(address: Address, house: House) -> str:
    """The address of something that is there."""
    pks = {
        "comments": house.comment.pk,
        "datasets": house.dataset.pk,
        "people": house.run.owner_id,
        "people:revoke": house.invitation.pk,
        "registry": house.export.checkpoint_id,
        "tokens": house.token.pk,
        "webhooks": house.webhook.pk,
    }
    fillings = {
        "<int:number>": house.run.number,
        "<int:pk>": pks.get(address.name, pks.get(address.name.partition(":")[0])),
        "<uuid:run_id>": house.run.pk,
        "<uuid:import_id>": house.job.pk,
        "<uuid:export_id>": house.export.pk,
        "<export_id>": house.export.pk,
        "<uuid:version_id>": house.dataset.versions.get().pk,
        "<uuid:glass_id>": house.glass.pk,
        "<int:place>": 0,
        "<str:command>": "stop",
        "<str:token>": "x",
        "<slug:slug>": "main",
        "<int:user>": house.run.owner_id,
        "<path:object_id>": "1",
        "<number>": house.run.number,
        "<dataset>": house.dataset.pk,
        "<import_id>": house.job.pk,
        "<group>": 1,
        "<slug>": "tiny-model",
        "<slug:deed>": "test",
    }
    route = address.route
    for part, value in fillings.items():
        route = route.replace(part, str(value))
    assert "<" not in route or "(?P" in route, f"Say in fill() what stands for {route}."
    return "/" + route
