"""From a state move to a signed message, through everything that may go wrong between them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from tests.webapp.stories import Story, launch
from tests.webapp.webhooks.receiver import Receiver, drip, receive
from training_core.contract.presets import TINY_COPY
from webapp.accounts.models import Membership, Project, Role, User
from webapp.runs.services import launch_run, stop_run
from webapp.webhooks import addresses, dispatch, sending, services
from webapp.webhooks.models import Delivery, Endpoint
from webapp.webhooks.outbox import note_test


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receive() as receiver:
        yield receiver


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """Ids that were given to the broker."""
    ids: list[UUID] = []
    monkeypatch.setattr(dispatch, "send_task", lambda _, pk: ids.append(pk))
    return ids


@pytest.fixture
def endpoint(ada: User, receiver: Receiver, settings: Any, sent: list[UUID]) -> Endpoint:
    settings.WEBHOOK_ALLOW_PRIVATE = True
    kinds = ["run.succeeded", "run.failed", "run.stopped", "run.lost"]
    return Endpoint.objects.create(user=ada, url=receiver.url, kinds=kinds)


def test_a_finished_run_is_told_signed(
    endpoint: Endpoint, receiver: Receiver, ada: User, bob: User
) -> None:
    story = Story(launch(ada)).start().step(61)
    assert not Delivery.objects.exists()
    story.finish("succeeded", "done", "All steps are done.")
    stop_run(launch(bob), bob)
    delivery = Delivery.objects.get()
    assert services.deliver(delivery.pk)
    [(headers, body)] = receiver.got
    document = json.loads(body)
    assert document["type"] == "run.succeeded"
    assert document["data"]["number"] == story.run.number
    assert document["data"]["state"] == "succeeded"
    key = base64.b64decode(endpoint.secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"
    assert headers["webhook-id"] == str(delivery.pk)
    assert abs(int(headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60
    delivery.refresh_from_db()
    assert (delivery.state, delivery.status, delivery.tries) == ("delivered", 204, 1)
    assert not services.deliver(delivery.pk)
    assert len(receiver.got) == 1


def test_only_what_was_chosen_is_told(endpoint: Endpoint, ada: User) -> None:
    Endpoint.objects.update(kinds=["run.failed"])
    stop_run(launch(ada), ada)
    assert not Delivery.objects.exists()


def test_who_has_left_the_project_is_told_nothing(endpoint: Endpoint, ada: User, bob: User) -> None:
    run = launch(ada)
    Membership.objects.filter(user=ada).delete()
    stop_run(run, bob)
    assert not Delivery.objects.exists()


def test_a_projects_webhook_tells_of_everybodys_runs(
    endpoint: Endpoint, ada: User, bob: User
) -> None:
    main = Project.objects.main()
    Endpoint.objects.update(project=main)
    stop_run(launch(bob), bob)
    assert not Delivery.objects.exists(), "she is no admin of it"
    Membership.objects.filter(user=ada).update(role=Role.ADMIN)
    run = launch(bob)
    stop_run(run, bob)
    assert Delivery.objects.get().payload["data"]["number"] == run.number
    second = Project.objects.create(slug="second", name="Second")
    Membership.objects.create(user=bob, project=second, role=Role.RESEARCHER)
    stop_run(launch_run(owner=bob, spec=TINY_COPY.spec, project=second), bob)
    assert Delivery.objects.count() == 1


def test_only_admins_make_a_webhook_of_a_project(
    browser: Client, ada: User, settings: Any, sent: list[UUID]
) -> None:
    posted = {"url": "https://example.org/", "kinds": ["run.failed"], "project": "main"}
    refused = browser.post("/accounts/webhooks/", posted)
    assert refused.status_code == 422
    assert "You are no admin of that project" in refused.content.decode()
    Membership.objects.filter(user=ada).update(role=Role.ADMIN)
    assert browser.post("/accounts/webhooks/", posted).status_code == 201
    endpoint = Endpoint.objects.get()
    assert endpoint.project == Project.objects.main()
    page = browser.get(f"/accounts/webhooks/{endpoint.pk}/").content.decode()
    assert "all runs of Main" in page


def test_who_may_not_sign_in_gets_nothing(
    endpoint: Endpoint, receiver: Receiver, ada: User
) -> None:
    delivery = note_test(endpoint)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert not services.deliver(delivery.pk)
    assert services.deliver_due() == 0
    assert receiver.got == []


def test_a_move_that_is_rolled_back_tells_nothing(endpoint: Endpoint, ada: User) -> None:
    run = launch(ada)
    with transaction.atomic():
        stop_run(run, ada)
        assert Delivery.objects.count() == 1
        transaction.set_rollback(True)
    assert not Delivery.objects.exists()


def test_a_broker_outage_loses_nothing(
    endpoint: Endpoint, receiver: Receiver, ada: User, sent: list[UUID]
) -> None:
    stop_run(launch(ada), ada)
    assert sent == []  # the transaction of this test never commits, so no message was sent
    assert services.deliver_due() == 1
    assert len(receiver.got) == 1
    assert services.deliver_due() == 0


def test_failures_are_tried_again_later_and_then_given_up(
    endpoint: Endpoint, receiver: Receiver
) -> None:
    receiver.status = 500
    delivery = note_test(endpoint)
    pauses = []
    for number in range(1, len(services.PAUSES) + 2):
        assert services.deliver(delivery.pk)
        assert not services.deliver(delivery.pk), "it is not due yet"
        delivery.refresh_from_db()
        assert (delivery.tries, delivery.status) == (number, 500)
        pauses.append(delivery.next_try_at - timezone.now())
        Delivery.objects.update(next_try_at=timezone.now() - timedelta(seconds=1))
    assert delivery.state == "given_up"
    assert pauses[:7] == sorted(pauses[:7])
    assert pauses[6] > timedelta(hours=11)
    endpoint.refresh_from_db()
    assert "It answered 500." in endpoint.disabled_because
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    waiting = note_test(endpoint)
    assert services.deliver_due() == 0
    receiver.status = 200
    services.enable(endpoint, endpoint.user)
    assert services.deliver_due() == 1
    waiting.refresh_from_db()
    assert waiting.state == "delivered"


def test_one_that_is_gone_is_switched_off_at_once(endpoint: Endpoint, receiver: Receiver) -> None:
    receiver.status = 410
    services.deliver(note_test(endpoint).pk)
    endpoint.refresh_from_db()
    assert endpoint.disabled_at is not None


def test_redirects_are_not_followed(endpoint: Endpoint, receiver: Receiver) -> None:
    receiver.status, receiver.headers = 302, {"Location": receiver.url}
    delivery = note_test(endpoint)
    services.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert "redirect" in delivery.error
    assert len(receiver.got) == 1


def test_an_endless_answer_is_cut(endpoint: Endpoint, receiver: Receiver) -> None:
    receiver.status, receiver.body = 200, b"x" * 5_000_000
    delivery = note_test(endpoint)
    services.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.state == "delivered"


def test_an_answer_in_drops_is_cut_at_the_deadline(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each drop would set a socket's own timeout back."""
    monkeypatch.setattr(sending, "MOST_SECONDS", 0.6)
    with drip() as url:
        Endpoint.objects.update(url=url)
        delivery = note_test(endpoint)
        services.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert "did not answer within" in delivery.error
    assert delivery.state == "pending"


def test_a_worker_that_dies_in_a_try_only_makes_it_late(
    endpoint: Endpoint, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_: Delivery) -> None:
        raise SystemExit

    delivery = note_test(endpoint)
    with monkeypatch.context() as patch:
        patch.setattr(services, "send", die)
        with pytest.raises(SystemExit):
            services.deliver(delivery.pk)
    assert services.deliver_due() == 0
    Delivery.objects.update(next_try_at=timezone.now())
    assert services.deliver_due() == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://127.0.0.1./",
        "http://localhost/",
        "http://LOCALHOST.:8080/",
        "http://hooks.localhost/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
        "http://[fec0::1]/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "http://user:pass@example.org/",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://example.org/\r\nHost: x",
        "javascript:alert(1)",
    ],
)
def test_addresses_that_webhooks_may_not_have(browser: Client, url: str) -> None:
    answer = browser.post("/accounts/webhooks/", {"url": url, "kinds": ["run.failed"]})
    assert answer.status_code == 422
    assert not Endpoint.objects.exists()
    with pytest.raises(addresses.TargetRefused):
        addresses.parse_target(url)


def test_names_of_private_addresses_are_refused_when_they_are_resolved(
    ada: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, sent: list[UUID]
) -> None:
    """Also when only one of a name's addresses is private."""

    def resolve(*_: object, **__: object) -> list[Any]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, ("93.184.216.34", 80)), (*kind, ("127.0.0.1", 80))]

    endpoint = Endpoint.objects.create(user=ada, url="http://rebind.example/", kinds=[])
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    delivery = note_test(endpoint)
    services.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert "127.0.0.1 is an address of a private network" in delivery.error
    assert receiver.got == []


def test_the_pages(browser: Client, receiver: Receiver, settings: Any, sent: list[UUID]) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = True
    assert "Nobody is told" in browser.get("/accounts/webhooks/").content.decode()
    made = browser.post("/accounts/webhooks/", {"url": receiver.url, "kinds": ["run.failed"]})
    assert made.status_code == 201
    endpoint = Endpoint.objects.get()
    assert endpoint.secret in made.content.decode()
    assert endpoint.secret not in browser.get("/accounts/webhooks/").content.decode()
    at = f"/accounts/webhooks/{endpoint.pk}/"
    assert "Nothing was sent yet" in browser.get(at).content.decode()
    assert browser.post(f"{at}test/do/").status_code == 302
    services.deliver_due()
    assert "delivered" in browser.get(at, headers={"HX-Request": "true"}).content.decode()
    browser.post(f"{at}disable/do/")
    assert "Switched off by you." in browser.get(at).content.decode()
    browser.post(f"{at}enable/do/")
    assert browser.post(f"{at}wild/do/").status_code == 404
    assert "Delete this webhook?" in browser.get(f"{at}delete/").content.decode()
    browser.post(f"{at}delete/do/")
    assert not Endpoint.objects.exists()


def test_webhooks_are_their_owners(browser: Client, bob: User, client: Client) -> None:
    endpoint = Endpoint.objects.create(user=bob, url="https://example.org/", kinds=[])
    at = f"/accounts/webhooks/{endpoint.pk}/"
    assert browser.get(at).status_code == 404
    for deed in ("test", "disable", "delete"):
        assert browser.post(f"{at}{deed}/do/").status_code == 404
    answer = browser.post("/accounts/webhooks/", {"url": "", "kinds": []}).content.decode()
    assert "Give the URL" in answer
    assert "Choose at least one kind" in answer
    assert Client().get("/accounts/webhooks/")["Location"].startswith("/accounts/login/")
