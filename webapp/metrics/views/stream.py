"""`GET /live/events`: server-sent hints; `GET /live/news`: the same by polling.

Called by `static/js/live/stream.js`. A stream holds no database connection while it waits. It ends
after ten minutes, or when the session or the right to see a topic is gone; browsers reconnect by
themselves and name the last hint they heard.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator
from typing import NamedTuple
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from webapp.accounts.models import User
from webapp.accounts.roles import Right, projects_where
from webapp.metrics.access import signed_in_or_401, unauthorised, visible_run_ids
from webapp.metrics.broadcast import Stream, get_hub
from webapp.metrics.live import (
    CURATORS,
    PROJECT_TOPICS,
    News,
    owner_part,
    project_topic,
    read_hints,
)
from webapp.metrics.params import BadParameter
from webapp.metrics.views.curves import bad_parameter, json_response

HEARTBEAT_S = 15.0
CHECK_S = 60.0
LIFE_S = 600.0
RETRY_MS = 2000
MAX_TOPICS = 60
OPEN_TOPICS = PROJECT_TOPICS | {"workers"}


class Opening(NamedTuple):
    """What a stream was opened with."""

    asked: frozenset[str]
    """Topics as the page knows them."""
    topics: frozenset[str]
    """What of them this person may hear, by project."""
    session: str
    since: int | None
    """The last hint that the client has heard."""


@login_not_required  # answers 401 itself: a stream cannot follow a redirect to the sign-in page
@require_GET
async def events(request: HttpRequest) -> HttpResponseBase:
    """Hints as they come, from Last-Event-ID on."""
    try:
        opening = await sync_to_async(_open)(request)
    except BadParameter as error:
        return bad_parameter(error)
    if opening is None:
        return unauthorised()
    response = StreamingHttpResponse(_stream(opening), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


@signed_in_or_401
@require_GET
def news(request: HttpRequest) -> HttpResponse:
    """The hints after a cursor, for pages whose stream does not get through."""
    try:
        topics = visible_topics(request.user, _topics(request))
        since = _cursor(request.GET.get("since", ""))
    except BadParameter as error:
        return bad_parameter(error)
    found = read_hints(topics, since)
    response = json_response(
        {
            "cursor": found.cursor,
            "hints": [hint.text for hint in found.hints],
            "resync": found.resync,
        }
    )
    response["Cache-Control"] = "no-store"
    return response


def visible_topics(user: User | AnonymousUser, topics: frozenset[str]) -> frozenset[str]:
    """What of the topics the user may hear. Raises Http404 for runs alone of which they see none.

    `runs`, `datasets` and `models` become the shares of the user's projects. A tab that still shows
    a run that was deleted does not end the stream of the other tabs.
    """
    run_topics = topics - OPEN_TOPICS
    seen = visible_run_ids(user, {run_of(topic) for topic in run_topics})
    heard = {topic for topic in run_topics if run_of(topic) in seen}
    if run_topics and not heard and run_topics == topics:
        raise Http404(_("There is no such run."))
    for topic in topics & PROJECT_TOPICS:
        heard |= shares(user, topic)
    return frozenset(heard | (topics & OPEN_TOPICS - PROJECT_TOPICS))


def shares(user: User | AnonymousUser, topic: str) -> set[str]:
    """What of one of `PROJECT_TOPICS` the user may hear.

    An upload that is no dataset yet is told to its owner and to the curators, as pages do.
    """
    projects = set(projects_where(user, Right.VIEW).values_list("pk", flat=True))
    heard = {project_topic(topic, pk) for pk in projects}
    if topic == "datasets" and user.pk is not None:
        curated = projects_where(user, Right.CHANGE_DATASETS).values_list("pk", flat=True)
        heard |= {project_topic(topic, pk, owner_part(user.pk)) for pk in projects}
        heard |= {project_topic(topic, pk, CURATORS) for pk in curated}
    return heard


def run_of(topic: str) -> UUID:
    """The run that a topic `run:ID` is about. Raises ValueError for another topic."""
    return UUID(topic.removeprefix("run:") if topic.startswith("run:") else "")


def _open(request: HttpRequest) -> Opening | None:
    """What the request asks for and may have; None for somebody who is not signed in."""
    if not request.user.is_authenticated:
        return None
    asked = _topics(request)
    topics = visible_topics(request.user, asked)
    last = request.headers.get("Last-Event-ID") or request.GET.get("since", "")
    return Opening(asked, topics, request.session.session_key or "", _cursor(last))


async def _stream(opening: Opening) -> AsyncIterator[str]:
    """The stream's text. It listens before it tells what was missed: nothing falls between."""
    asked, topics, session, since = opening
    yield f"retry: {RETRY_MS + random.randrange(500)}\n\n"
    started = checked = time.monotonic()
    hub = get_hub()
    async with hub.open(topics, session) as stream:
        try:
            await hub.listen()
        except TimeoutError:
            return  # no database; the client tries again
        yield _told(await sync_to_async(_missed)(topics, since))
        while time.monotonic() - started < LIFE_S and not stream.is_closed:
            await stream.wait(HEARTBEAT_S)
            yield _drain(stream, hub.cursor) or ": still here\n\n"
            if time.monotonic() - checked >= CHECK_S:
                checked = time.monotonic()
                allowed = await sync_to_async(_still_allowed)(session, asked)
                if allowed is None:
                    yield _message("bye", '{"reason":"signed_out"}', hub.cursor)
                if allowed != topics:
                    return  # a browser that is still signed in comes back for the rest


def _missed(topics: frozenset[str], since: int | None) -> News:
    """What was published since the client last heard something."""
    try:
        return read_hints(topics, since)
    finally:
        connections.close_all()  # the request's connection too: the stream may last for minutes


def _told(missed: News) -> str:
    """The beginning of a stream: where it stands, and what was missed."""
    texts = [_message("hello", "{}", missed.cursor)]
    if missed.resync:
        texts.append(_message("resync", "{}", missed.cursor))
    texts += [_message("message", hint.text, missed.cursor) for hint in missed.hints]
    return "".join(texts)


def _drain(stream: Stream, cursor: int) -> str:
    """Everything queued, as text; empty when nothing is."""
    texts = []
    if stream.must_resync:
        stream.must_resync = False
        texts.append(_message("resync", "{}", cursor))
    while stream.hints:
        texts.append(_message("message", stream.hints.popleft().text, cursor))
    return "".join(texts)


def _message(event: str, text: str, cursor: int) -> str:
    """One server-sent event; `text` is JSON, hence one line."""
    return f"id: {cursor}\nevent: {event}\ndata: {text}\n\n"


def _still_allowed(session: str, asked: frozenset[str]) -> frozenset[str] | None:
    """What of the topics the session may hear now; None when it is signed in no more."""
    request = HttpRequest()
    request.session = SessionStore(session)
    try:
        user = get_user(request)
        return visible_topics(user, asked) if isinstance(user, User) else None
    except Http404:
        return frozenset()
    finally:
        connections.close_all()


def _topics(request: HttpRequest) -> frozenset[str]:
    """The topics asked for, as a comma-separated list. Raises BadParameter."""
    topics = frozenset(filter(None, request.GET.get("topics", "").split(",")))
    if not 1 <= len(topics) <= MAX_TOPICS:
        raise BadParameter("topics", f"give 1 to {MAX_TOPICS} topics, separated by commas")
    for topic in topics - OPEN_TOPICS:
        try:
            run_of(topic)
        except ValueError:
            known = ", ".join(sorted(OPEN_TOPICS))
            raise BadParameter("topics", f"{topic!r} is none of {known} or run:ID") from None
    return topics


def _cursor(text: str) -> int | None:
    """A cursor, or None where there is none. Raises BadParameter."""
    if text == "":
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise BadParameter("since", "must be the cursor of an earlier answer")
    return int(text)
