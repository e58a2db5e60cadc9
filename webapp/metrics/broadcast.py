"""Carries live hints from the database to this process's open streams.

Used by `webapp.metrics.views.stream`. One task per process listens (LISTEN/NOTIFY on a connection
of its own, with a slow poll beneath it in case notifications do not get through) and hands each
hint to the streams of its topic, so the cost does not grow with tabs. It runs only while somebody
is connected. A stream that reads too slowly loses its backlog and is told to fetch everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import connections
from psycopg import AsyncConnection

from webapp.metrics.live import CHANNEL, LOOK_BACK_ROWS, Hint, make_hint

logger = logging.getLogger(__name__)

POLL_S = 1.0
RETRY_S = 1.0
GAP_S = 60.0
"""How long an id that was given but not yet seen is waited for."""
MAX_GAPS = 1000
BACKLOG = 256
LISTEN_TIMEOUT_S = 10.0
PAGE = 1000
STREAMS_PER_SESSION = 6


class Stream:
    """What one connected client has to be told."""

    def __init__(self, topics: frozenset[str], session: str) -> None:
        self.topics = topics
        self.session = session
        self.hints: deque[Hint] = deque()
        self.must_resync = False
        self.is_closed = False
        self._ready = asyncio.Event()

    def push(self, hint: Hint) -> None:
        """Queue a hint, or give the backlog up when nobody reads it."""
        if len(self.hints) >= BACKLOG:
            self.hints.clear()
            self.must_resync = True
        self.hints.append(hint)
        self._ready.set()

    def close(self) -> None:
        """End the stream; the client comes back by itself if it still wants to listen."""
        self.is_closed = True
        self._ready.set()

    async def wait(self, timeout_s: float) -> None:
        """Return when there is something to say, or after the timeout."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), timeout_s)
        self._ready.clear()


class Hub:
    """The streams of one event loop and the task that feeds them."""

    def __init__(self) -> None:
        self.streams: dict[str, set[Stream]] = defaultdict(set)
        self.by_session: dict[str, list[Stream]] = defaultdict(list)
        self._task: asyncio.Task[None] | None = None
        self._last_id: int | None = None
        self._is_listening = asyncio.Event()
        self._gaps: dict[int, float] = {}

    @property
    def cursor(self) -> int:
        """All hints up to here have been handed out or given up."""
        return min(self._gaps) - 1 if self._gaps else self._last_id or 0

    async def listen(self) -> None:
        """Return when no hint can be missed any more. Raises TimeoutError without a database."""
        await asyncio.wait_for(self._is_listening.wait(), LISTEN_TIMEOUT_S)

    @contextlib.asynccontextmanager
    async def open(self, topics: Iterable[str], session: str) -> AsyncIterator[Stream]:
        """A stream that hears the topics from now on."""
        stream = Stream(frozenset(topics), session)
        for topic in stream.topics:
            self.streams[topic].add(stream)
        mine = self.by_session[session]
        mine.append(stream)
        if len(mine) > STREAMS_PER_SESSION:
            mine[0].close()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._feed(), name="live-hints")
        try:
            yield stream
        finally:
            self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        for topic in stream.topics:
            self.streams[topic].discard(stream)
            if not self.streams[topic]:
                del self.streams[topic]
        self.by_session[stream.session].remove(stream)
        if not self.by_session[stream.session]:
            del self.by_session[stream.session]
        if not self.by_session and self._task is not None:
            self._task.cancel()
            self._task = self._last_id = None
            self._is_listening.clear()
            self._gaps.clear()

    async def _feed(self) -> None:
        """Listen for ever, through lost connections."""
        while True:
            try:
                async with await AsyncConnection.connect(**_parameters()) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    while True:
                        await self._hand_out(connection)
                        async for _ in connection.notifies(timeout=POLL_S, stop_after=1):
                            pass
            except (psycopg.Error, OSError) as error:
                logger.warning("Live hints: %s; trying again", error)
                await asyncio.sleep(RETRY_S)

    async def _hand_out(self, connection: AsyncConnection[Any]) -> None:
        """Hand out what is new, and what was skipped before because it was not committed yet."""
        if self._last_id is None:
            self._last_id = await self._first_look(connection)
        self._is_listening.set()
        while True:
            rows = await self._page(connection, self._last_id)
            for event_id, topic, kind, data in rows:
                self._last_id = self._note(event_id, self._last_id)
                hint = make_hint(event_id, topic, kind, data)
                for stream in self.streams.get(topic, ()):
                    stream.push(hint)
            if len(rows) < PAGE:
                break
        given_up = time.monotonic() - GAP_S
        self._gaps = {gap: seen for gap, seen in self._gaps.items() if seen > given_up}

    async def _first_look(self, connection: AsyncConnection[Any]) -> int:
        """The highest id given so far; recent ones that are missing may still be committed."""
        found = await connection.execute(
            "SELECT s.last_value, array(SELECT id FROM metrics_liveevent"
            " WHERE id > s.last_value - %s ORDER BY id) FROM metrics_liveevent_id_seq s",
            [LOOK_BACK_ROWS],
        )
        row = await found.fetchone()
        last_id, seen = (int(row[0]), set(row[1])) if row else (0, set())
        recent = range(max(1, last_id - LOOK_BACK_ROWS + 1), last_id + 1)
        self._gaps = {i: time.monotonic() for i in recent if i not in seen}
        return last_id

    async def _page(self, connection: AsyncConnection[Any], last_id: int) -> list[Any]:
        found = await connection.execute(
            "SELECT id, topic, kind, data FROM metrics_liveevent"
            " WHERE id > %s OR id = ANY(%s) ORDER BY id LIMIT %s",
            [last_id, list(self._gaps), PAGE],
        )
        return await found.fetchall()

    def _note(self, event_id: int, last_id: int) -> int:
        """Remember the ids that were skipped; return the highest id so far."""
        self._gaps.pop(event_id, None)
        skipped = range(max(last_id + 1, event_id - MAX_GAPS), event_id)
        self._gaps |= dict.fromkeys(skipped, time.monotonic())
        return max(last_id, event_id)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def get_hub() -> Hub:
    """The hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())


def open_streams() -> int:
    """Streams that are open now, of all event loops of this process."""
    return sum(sum(map(len, tuple(hub.by_session.values()))) for hub in tuple(_hubs.values()))


def _parameters() -> dict[str, Any]:
    """Django's connection parameters, for a plain connection outside of its pool."""
    parameters = connections["default"].get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    return {**parameters, "autocommit": True, "connect_timeout": 5}
