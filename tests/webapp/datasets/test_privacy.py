"""Uploads that are not datasets yet: their owner's and the project's curators', nobody else's."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.datasets.files import lines
from webapp.accounts.models import Membership, Role, User
from webapp.datasets import dispatch, services
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import DatasetImport

ROWS = [{"question": f"secret {i}", "answer": i} for i in range(40)]
PAGES = ("import", "import_progress", "import_errors")
STATES = ("uploaded", "queued", "running", "rejected")
CHOICE = {"name": "Mine", "prompt": "question", "answer": "answer", "held_out_percent": "20"}


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)


@pytest.fixture
def bobs(bob: User) -> DatasetImport:
    """A file that Bob uploaded."""
    return services.store_upload(bob, "bobs-secrets.jsonl", [lines(*ROWS)])


@pytest.mark.parametrize("state", STATES)
def test_somebody_elses_import_does_not_exist(
    state: str, browser: Client, bobs: DatasetImport
) -> None:
    DatasetImport.objects.update(state=state)
    for page in PAGES:
        address = reverse(f"datasets:{page}", args=[bobs.pk])
        for query in ("", "?columns=1"):
            answer = browser.get(address + query)
            assert answer.status_code == 404
            assert "secret" not in answer.content.decode()
    assert "bobs-secrets" not in browser.get(reverse("datasets:index")).content.decode()


@pytest.mark.parametrize("action", ["preview", "import"])
def test_somebody_elses_file_is_neither_previewed_nor_imported(
    action: str, browser: Client, bobs: DatasetImport
) -> None:
    address = reverse("datasets:import", args=[bobs.pk])
    answer = browser.post(address, CHOICE | {"action": action})
    assert answer.status_code == 404
    assert "secret" not in answer.content.decode()
    bobs.refresh_from_db()
    assert bobs.state == "uploaded"


@pytest.mark.parametrize("who", ["owner", "curator"])
def test_the_owner_and_curators_see_and_import_it(
    who: str, ada: User, bob: User, client: Client, bobs: DatasetImport
) -> None:
    Membership.objects.filter(user=ada).update(role=Role.CURATOR)
    client.force_login(bob if who == "owner" else ada)
    for page in PAGES:
        assert client.get(reverse(f"datasets:{page}", args=[bobs.pk])).status_code == 200
    assert "bobs-secrets" in client.get(reverse("datasets:index")).content.decode()
    address = reverse("datasets:import", args=[bobs.pk])
    assert "secret 0" in client.post(address, CHOICE | {"action": "preview"}).content.decode()
    assert client.post(address, CHOICE).status_code == 302


def test_what_became_a_dataset_is_seen_by_all_and_changed_by_nobody(
    browser: Client, bobs: DatasetImport
) -> None:
    services.start_import(bobs, "Bobs", Mapping("question", "answer"), "")
    services.run_import(bobs.pk)
    bobs.refresh_from_db()
    address = reverse("datasets:import", args=[bobs.pk])
    assert browser.get(address).status_code == 200
    refused = browser.post(address, CHOICE)
    assert refused.status_code == 403
    assert "bob uploaded bobs-secrets.jsonl; only they or a curator" in refused.content.decode()
    assert bobs.version is not None
    page = browser.get(reverse("datasets:detail", args=[bobs.version.dataset.pk]))
    assert "bobs-secrets" in page.content.decode()
