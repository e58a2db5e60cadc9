"""Every operation asked by everybody's token: the role decides, the scope decides, both at once."""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import HttpResponse
from django.test import Client

from tests.webapp.api.operation_rules import PEOPLE, RULES, Rule
from tests.webapp.registry.exports import make_ready
from tests.webapp.stories import Story, launch
from webapp.accounts.models import Membership, Project, Role, User
from webapp.api.openapi import METHODS
from webapp.api.scopes import Scope
from webapp.api.services import create_token
from webapp.api.site import api
from webapp.datasets import services as datasets
from webapp.datasets.models import Dataset, DatasetImport, DatasetVersion
from webapp.registry.models import ModelExport
from webapp.runs.models import Run

DOCUMENT: dict[str, Any] = dict(api.get_openapi_schema(path_prefix="/api/v1/"))
CALLS = {
    operation["operationId"]: (method, path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if method in METHODS
}
MOST = tuple(scope for scope in Scope if scope != Scope.ADMIN)
FILE = "question,answer\n" + "".join(f"{n} + 1,{n + 1}\n" for n in range(20))


class House(NamedTuple):
    """What the operations name: all of it Bob's, all of it in the main project."""

    run: Run
    dataset: Dataset
    job: DatasetImport
    export: ModelExport

    def address(self, name: str) -> str:
        """Where an operation is."""
        _, path, _ = CALLS[name]
        fillings = {
            "number": self.run.number,
            "slug": "tiny-model",
            "group": self.run.rollout_groups.first().pk if "{group}" in path else 0,
            "dataset": self.dataset.pk,
            "import_id": self.job.pk,
            "export_id": self.export.pk,
        }
        query = RULES[name].query.format(run=self.run)
        return path.format(**fillings) + (f"?{quote(query, safe='=&')}" if query else "")


@pytest.fixture
def house(bob: User) -> House:
    """A run at work with an export, a dataset with a version, and an upload that is none yet."""
    story = Story(launch(bob)).start()
    story.evaluate(0, "start", "base model", 0.04).step(61).rollouts(61).checkpoint(61, best=True)
    job = datasets.store_upload(bob, "a.csv", [FILE.encode()])
    dataset = Dataset.objects.create(name="sums", owner=bob)
    DatasetVersion.objects.create(dataset=dataset, number=1, state="ready", content_hash="x")
    checkpoint = story.run.checkpoints.select_related("run__project").get()
    return House(story.run, dataset, job, make_ready(checkpoint, bob))


@pytest.fixture
def people(db: None) -> dict[str, User]:
    """Somebody of each role, and an outsider."""
    found = {}
    for person in PEOPLE:
        user = found[person] = User.objects.create_user(f"the-{person}")
        Membership.objects.filter(user=user).delete()
        if person != "outsider":
            Membership.objects.create(user=user, project=Project.objects.main(), role=Role(person))
    return found


def call(
    house: House, name: str, user: User | None, scopes: tuple[Scope, ...] = ()
) -> HttpResponse:
    """Ask with a fresh token, or with none; it leaves no trace."""
    method, _, _ = CALLS[name]
    rule: Rule = RULES[name]
    headers = {}
    with transaction.atomic():
        if user is not None:
            _, secret = create_token(user, "walk", scopes)
            headers = {"Authorization": f"Bearer {secret}"}
        client = Client(enforce_csrf_checks=True)
        send = getattr(client, method)
        where = house.address(name)
        if rule.form:
            file = SimpleUploadedFile("b.csv", FILE.encode())
            answer = send(where, {**rule.form, "file": file}, headers=headers)
        elif rule.sent is not None:
            body = json.dumps(rule.sent)
            answer = send(where, body, content_type="application/json", headers=headers)
        else:
            answer = send(where, headers=headers)
        transaction.set_rollback(True)
    return answer


def test_every_operation_has_a_rule() -> None:
    missing = sorted(set(CALLS) - set(RULES))
    assert not missing, (
        f"Nobody has said who may use {', '.join(missing)}: add a line for each to RULES in "
        "tests/webapp/api/operation_rules.py."
    )
    assert not set(RULES) - set(CALLS), "Rules for operations that are no more: take them out."
    assert set(PEOPLE) == {"outsider", *Role.values}


@pytest.mark.parametrize("name", RULES)
def test_who_may_use_it(name: str, house: House, people: dict[str, User]) -> None:
    assert CALLS[name][2]["x-scope"] == RULES[name].scope
    assert_roles_decide(name, house, people)
    assert_scope_decides_too(name, house, people["admin"])
    assert_a_token_is_needed(name, house)


def assert_roles_decide(name: str, house: House, people: dict[str, User]) -> None:
    """Each person gets what the rule says, with the scope of administrators and without."""
    rule, wrong = RULES[name], []
    for scopes, expected in ((MOST, rule.answers), (tuple(Scope), rule.with_admin or rule.answers)):
        for person, user in people.items():
            answer = call(house, name, user, scopes)
            if answer.status_code != expected[person]:
                words = answer.content[:200]
                with_admin = " with admin" if Scope.ADMIN in scopes else ""
                got = f"{answer.status_code} instead of {expected[person]}"
                wrong.append(f"{person}{with_admin}: {got}, {words!r}")
    assert not wrong, f"{name}: {'; '.join(wrong)}"


def assert_scope_decides_too(name: str, house: House, admin: User) -> None:
    """Somebody who may do everything in the project is refused without the operation's scope."""
    others = tuple(scope for scope in Scope if scope != RULES[name].scope)
    refused = call(house, name, admin, others)
    assert refused.status_code == 403
    assert f'scope="{RULES[name].scope}"' in refused["WWW-Authenticate"]
    assert refused.json()["detail"]


def assert_a_token_is_needed(name: str, house: House) -> None:
    """Nobody gets in without one."""
    answer = call(house, name, None)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_superuser_is_one_only_with_the_scope_admin(house: House) -> None:
    root = User.objects.create_superuser("root")
    assert call(house, "get_run", root, (Scope.READ,)).status_code == 404
    assert call(house, "get_run", root, (Scope.READ, Scope.ADMIN)).status_code == 200
    assert call(house, "stop_run", root, (Scope.CONTROL, Scope.ADMIN)).status_code == 200
    root.refresh_from_db()
    assert root.is_superuser
