"""Chromium in a thread of its own.

Playwright's sync interface keeps an event loop running in the thread that uses it, in which Django
refuses to touch the database. Here that thread is not the tests' one. `in_browser` runs a whole
test there. One browser serves the whole session.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from webapp.launcher.checks_machine import find_browser

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chromium")
_users: list[Browser] = []
_running = ExitStack()


@contextmanager
def shared_browser() -> Iterator[Browser]:
    """The browser; started for the first user, ended by the last. Use it through `call`."""
    _users.append(_users[0] if _users else call(_start))
    try:
        yield _users[0]
    finally:
        _users.pop()
        if not _users:
            call(_running.close)


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run something in the browser's thread."""
    return _thread.submit(function, *args, **kwargs).result()


def in_browser(test: Callable[..., None]) -> Callable[..., None]:
    """A test that runs in the browser's thread."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        call(test, *args, **kwargs)

    return run


def _start() -> Browser:
    found = find_browser()
    assert found, "The tests need Chromium on PATH, or its place in TEMPER_CHROMIUM."
    playwright = _running.enter_context(sync_playwright())
    return _running.enter_context(
        playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
    )
