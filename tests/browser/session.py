"""A real Chromium against a real server: uvicorn in a process of its own, on the test database,
serving collected static files as in production.

Every page of a test is watched: an error on the console, an exception, or a breach of the content
security policy fails the test. Nothing is skipped: without a browser the tests say so and fail.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from tests.engines import Engines
from webapp.accounts.models import User
from webapp.accounts.services import create_login_link
from webapp.launcher import paths
from webapp.runs import dispatch

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_TIMEOUT_S = 60
WATCH_POLICY = """
window.__breaches = [];
document.addEventListener('securitypolicyviolation', (event) => {
  window.__breaches.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
});
"""

PATIENCE_MS = 15_000
"""Longest wait for a page on a busy machine; nothing is asserted about time."""

expect.set_options(timeout=PATIENCE_MS)
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright keeps an event loop in this thread


@pytest.fixture(scope="session")
def server_url(engines: Engines, django_db_setup: None) -> Iterator[str]:
    """Address of the server, up until the session ends."""
    port = free_port()
    log = engines.home / "browser-server.log"
    process = start_server(engines, port, log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(url, process, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_server(engines: Engines, port: int, log: Path) -> subprocess.Popen[bytes]:
    """The real server on the test database, on its way up."""
    environment = engines.child_environment(TEMPER_LOG_LEVEL="WARNING", TEMPER_DEBUG="")
    subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity=0"],
        cwd=paths.REPOSITORY,
        env=environment,
        check=True,
    )
    command = [sys.executable, "-m", "uvicorn", "--host=127.0.0.1", f"--port={port}"]
    with log.open("wb") as output:
        return subprocess.Popen(
            [*command, "--log-level=warning", "--lifespan=off", "webapp.asgi:application"],
            cwd=paths.REPOSITORY,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's Chromium. Ends with its module, since Playwright's event loop in this thread
    would trip the tests of asynchronous views."""
    found = next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.fail(
            "These tests need Chromium: as root run `apt-get install chromium`, else put a "
            "chromium or google-chrome on PATH."
        )
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        yield browser
        browser.close()


class Watched:
    """Opens pages of one test and remembers what went wrong on them."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.browser, self.url = browser, url
        self.problems: list[str] = []
        self.expected: list[str] = []
        """Parts of console messages that the test means to provoke."""
        self.contexts: list[BrowserContext] = []

    def context(self, **options: object) -> BrowserContext:
        """A fresh browser profile."""
        context = self.browser.new_context(base_url=self.url, **options)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(WATCH_POLICY)
        context.on("page", self._watch)
        self.contexts.append(context)
        return context

    def page(self, **options: object) -> Page:
        """A page in a fresh profile, not signed in."""
        return self.context(**options).new_page()

    def signed_in(self, user: User, **options: object) -> Page:
        """A page of somebody who has used a one-time link."""
        page, link = self.page(**options), create_login_link(user)
        page.request.get(link)  # what the button does, without drawing the pages around it
        tokens = [c["value"] for c in page.context.cookies() if c["name"] == "csrftoken"]
        answer = page.request.post(link, form={"csrfmiddlewaretoken": tokens[0]}, max_redirects=0)
        assert answer.status == 302, f"The link answers {answer.status}."
        page.goto("/runs/")
        return page

    def finish(self) -> None:
        """Ask every open page about breaches, then close them."""
        for context in self.contexts:
            for page in context.pages:
                breaches = [] if page.is_closed() else page.evaluate("window.__breaches ?? []")
                self.problems += [f"policy: {breach}" for breach in breaches]
            context.close()

    def _watch(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))

    def _on_console(self, message: ConsoleMessage) -> None:
        text = f"{message.type}: {message.text} ({message.location.get('url', '')})"
        if message.type in {"error", "warning"} and not any(e in text for e in self.expected):
            self.problems.append(text)


@pytest.fixture
def watched(
    chromium: Browser, server_url: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watched]:
    """Pages of one test; clean consoles are part of every test."""
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)  # no worker listens here
    watched = Watched(chromium, server_url)
    yield watched
    watched.finish()
    assert watched.problems == []


@pytest.fixture
def ada(transactional_db: None) -> User:
    """Who uses the browser."""
    return User.objects.create_user("ada", is_staff=True, is_superuser=True)


@pytest.fixture(scope="session")
def shoot() -> Callable[..., None]:
    """Writes a screenshot into var/screenshots/, of the whole page unless told otherwise."""
    folder = paths.REPOSITORY / "var" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)

    def shoot(page: Page, name: str, full_page: bool = True) -> None:
        page.screenshot(path=folder / f"{name}.png", full_page=full_page, animations="disabled")

    return shoot


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the server answers; fail with its log when it does not."""
    give_up = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < give_up:
        try:
            with urllib.request.urlopen(f"{url}/accounts/login/", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"The server did not come up:\n{log.read_text()[-4000:]}")
