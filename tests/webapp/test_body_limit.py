"""Bodies that are too large are refused while they come in, from strangers above all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

from webapp.accounts.models import Membership, Role, User
from webapp.accounts.sessions import find_user
from webapp.asgi import application
from webapp.body_limit import BodyLimit, Larger
from webapp.datasets.uploads import may_upload

MOST, MOST_OF_A_MEMBER = 100, 1000


async def reads_everything(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers with the length of what came."""
    taken, more = 0, True
    while more:
        message = await receive()
        taken += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(taken).encode()})


async def is_member(scope: Any) -> bool:
    return (b"cookie", b"member") in scope["headers"]


LIMITED = BodyLimit(
    reads_everything, most_bytes=MOST, larger={"/up/": Larger(MOST_OF_A_MEMBER, is_member)}
)


def status_of(
    *pieces: bytes, path: str = "/", declared: int | str | None = None, member: bool = False
) -> int:
    """POST the pieces; the status of the answer."""
    headers = [(b"cookie", b"member")] if member else []
    if declared is not None:
        headers.append((b"content-length", str(declared).encode()))
    scope = {"type": "http", "path": path, "method": "POST", "headers": headers}

    async def talk() -> int:
        communicator = ApplicationCommunicator(LIMITED, scope)
        for i, piece in enumerate(pieces):
            more = i + 1 < len(pieces)
            await communicator.send_input(
                {"type": "http.request", "body": piece, "more_body": more}
            )
        start = await communicator.receive_output(5)
        await communicator.receive_output(5)
        return int(start["status"])

    return asyncio.run(talk())


def test_what_is_small_enough_passes() -> None:
    assert status_of(b"x" * MOST, declared=MOST) == 200


def test_a_declared_length_is_refused_before_anything_is_read() -> None:
    assert status_of(declared=MOST + 1) == 413


@pytest.mark.parametrize("declared", [None, 10, "ten", "9" * 30, "-1"])
def test_a_length_that_is_missing_or_wrong_helps_nobody(declared: int | str | None) -> None:
    assert status_of(*[b"x" * 60] * 2, declared=declared) == 413


def test_a_member_may_send_more_to_one_address() -> None:
    body = b"x" * MOST_OF_A_MEMBER
    assert status_of(body, path="/up/", declared=len(body), member=True) == 200
    assert status_of(body + b"x", path="/up/", member=True) == 413
    assert status_of(body, path="/up/", declared=len(body)) == 413
    assert status_of(body, path="/", declared=len(body), member=True) == 413


def scope_with(cookie: str) -> dict[str, Any]:
    """A request that is not read yet, with one cookie."""
    return {"headers": [(b"cookie", cookie.encode())]}


@pytest.mark.django_db
def test_a_session_tells_who_is_signed_in(browser: Client, ada: User) -> None:
    name = settings.SESSION_COOKIE_NAME
    key = browser.cookies[name].value
    assert find_user(scope_with(f"{name}={key}")) == ada
    assert find_user(scope_with(f"{name}={key[:-1]}0x")) is None
    assert find_user(scope_with(f"other={key}")) is None
    assert find_user(scope_with("\x00=;;;")) is None
    assert find_user(scope_with(f'{name}="{key}\\000"')) is None
    assert find_user({"headers": []}) is None
    browser.logout()
    assert find_user(scope_with(f"{name}={key}")) is None


@pytest.mark.django_db
def test_a_large_file_is_read_from_those_alone_who_may_add_it(browser: Client, ada: User) -> None:
    """Neither a viewer's nor a closed account's fills the disk before it is refused."""
    scope = scope_with(f"sessionid={browser.cookies[settings.SESSION_COOKIE_NAME].value}")
    assert may_upload(scope)
    Membership.objects.filter(user=ada).update(role=Role.VIEWER)
    assert not may_upload(scope)
    Membership.objects.filter(user=ada).update(role=Role.CURATOR)
    assert may_upload(scope)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert not may_upload(scope)


@pytest.mark.parametrize("kind", ["text/html; charset*=nothing''x", "a/b; x*=undefined''y"])
def test_headers_that_cannot_be_read_are_no_fault_of_the_server(kind: str) -> None:
    async def ask() -> int:
        headers = [(b"content-type", kind.encode())]
        scope = {"type": "http", "path": "/", "method": "GET", "headers": headers}
        communicator = ApplicationCommunicator(application, {**scope, "query_string": b""})
        await communicator.send_input({"type": "http.request", "body": b""})
        return int((await communicator.receive_output(5))["status"])

    assert asyncio.run(ask()) == 400


def test_the_served_application_is_the_limited_one() -> None:
    """A dataset file may be large, by its page and by the API; nothing else may."""
    assert isinstance(application, BodyLimit)
    assert set(application._larger) == {"/datasets/upload/", "/api/v1/imports"}
