"""Refuses request bodies that are larger than anybody may send, while they come in.

Wraps Django's application in `webapp.asgi`. Django reads a body to its end before the first line of
ours runs, so without this a stranger could fill the disk. Paths in `larger` may take more, from
those who prove in the headers who they are.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]
Knows = Callable[[Scope], Awaitable[bool]]

WORDS = "The request is larger than this address takes."
API_PREFIX = "/api/v1/"
"""Below it errors are problem documents, also this one."""


class Larger(NamedTuple):
    """A larger limit for some."""

    most_bytes: int
    """Largest body."""
    knows: Knows
    """Whether the sender of a request is somebody who may."""


class _TooLarge(Exception):
    """More came than was allowed."""


class BodyLimit:
    """The wrapped application."""

    def __init__(
        self, application: Application, *, most_bytes: int, larger: Mapping[str, Larger]
    ) -> None:
        self._application = application
        self._most_bytes = most_bytes
        self._larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is small enough; answer 413 to the rest."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        most, has_begun, taken = await self._limit(scope), False, 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                raise _TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            if _declared(scope) > most:
                raise _TooLarge
            await self._application(scope, counted, noted)
        except _TooLarge:
            if not has_begun:
                await _refuse(send, scope["path"])

    async def _limit(self, scope: Scope) -> int:
        """Largest body of this request."""
        exception = self._larger.get(scope["path"])
        if exception and scope["method"] == "POST" and _declared(scope) != 0:
            return exception.most_bytes if await exception.knows(scope) else self._most_bytes
        return self._most_bytes


def _declared(scope: Scope) -> int:
    """Content-Length; -1 when there is none or it is no number, and counting has to do."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 20 else -1
    return -1


async def _refuse(send: Send, path: str) -> None:
    """413, and no more of the connection: what else comes on it is still that body."""
    kind, words = "text/plain; charset=utf-8", WORDS
    if path.startswith(API_PREFIX):
        kind = "application/problem+json"
        title = "Request Entity Too Large"
        problem = {"type": "about:blank", "title": title, "status": 413, "detail": WORDS}
        words = json.dumps({**problem, "errors": []})
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(words)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode()})
