"""The check page of a dataset: who may see and touch it, and which rows a tryout takes."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.datasets.test_check import SUMS, address, fields
from tests.webapp.glass.tryouts import RIGHT, ask_tryout, finish_tryout, version_of
from webapp.accounts.models import Membership, Project, Role, User
from webapp.datasets import dispatch as dataset_dispatch
from webapp.datasets.models import DatasetVersion
from webapp.datasets.services import sample_records, spread
from webapp.glass import dispatch as glass_dispatch
from webapp.glass.models import GlassStep
from webapp.runs import dispatch as run_dispatch

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (dataset_dispatch, glass_dispatch, run_dispatch):
        monkeypatch.setattr(module, "send_task", lambda *_: True)


@pytest.fixture
def version(ada: User) -> DatasetVersion:
    return version_of(ada, SUMS)


def test_a_viewer_looks_and_does_not_touch(
    client: Client, ada: User, version: DatasetVersion
) -> None:
    step = finish_tryout(ask_tryout(ada, version), RIGHT)
    viewer = User.objects.create_user("vera")
    Membership.objects.filter(user=viewer).update(role=Role.VIEWER)
    client.force_login(viewer)
    text = client.get(address(version), {"tryout": str(step.pk)}).content.decode()
    assert "You may look" in text
    assert "Ask the base model</button>" not in text
    assert "Delete" not in text
    for action in ("try", "launch", "look"):
        assert client.post(address(version), fields(version, action=action)).status_code == 403


def test_what_is_elsewhere_does_not_exist(
    client: Client, ada: User, bob: User, version: DatasetVersion
) -> None:
    step = ask_tryout(ada, version)
    other = version_of(ada, SUMS, name="other")
    client.force_login(bob)
    assert client.get(address(other), {"tryout": str(step.pk)}).status_code == 404
    assert client.get(address(version), {"tryout": "x"}).status_code == 404
    assert client.get(address(version), {"preset": "x"}).status_code == 404
    secret = Project.objects.create(slug="secret", name="Secret")
    type(version.dataset).objects.filter(pk=version.dataset.pk).update(project=secret)
    GlassStep.objects.update(project=secret)
    assert client.get(address(version)).status_code == 404
    assert client.post(address(version), {"action": "launch"}).status_code == 404
    assert client.get(reverse("glass:live", args=[step.pk])).status_code == 404


def test_samples_are_training_rows_spread_over_the_version(ada: User) -> None:
    version = version_of(ada, [str(n) for n in range(300)])
    records = sample_records(version, 100)
    assert 80 <= len(records) <= 100
    assert {record.split for record in records} == {"train"}
    numbers: Any = [int(record.answer) for record in records]
    assert numbers == sorted(numbers)
    assert numbers[0] < 10
    assert numbers[-1] > 270
    assert spread(range(10), 3) == [0, 3, 6]
    assert spread([], 3) == []
    assert spread([1, 2], 3) == [1, 2]
