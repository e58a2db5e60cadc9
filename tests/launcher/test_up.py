"""`manage.py up` as a user meets it: a link that signs in, restarts, kills, a clean end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from tests.launcher.conftest import is_running, wait_for
from webapp.launcher.paths import REPOSITORY
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.process_records import instance_processes, recorded_processes
from webapp.launcher.valkey import EmbeddedValkey

LINK = re.compile(r"http://127\.0\.0\.1:\d+/\S+")
START_PATIENCE_S = 60.0


class RunningUp:
    """One `up` in a directory, serving the web and the queue `cpu`."""

    def __init__(self, base: Path, **more: str) -> None:
        self.base = base
        self.output = base / f"said-{len(list(base.glob('said-*')))}"
        self.environment = {
            **os.environ,
            "TEMPER_DATA_DIR": str(base),
            "TEMPER_WORKER_QUEUES": "cpu",  # no training queue, hence no model to prepare
            **more,
        }
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, str(REPOSITORY / "manage.py"), "up"],
                stdout=out,
                stderr=out,
                env=self.environment,
                cwd="/",
            )

    @property
    def text(self) -> str:
        return self.output.read_text()

    def wait_until_started(self) -> str:
        """The sign-in link."""
        wait_for(
            lambda: "Ctrl+C stops" in self.text or self.process.poll() is not None,
            START_PATIENCE_S,
        )
        assert self.process.poll() is None, self.text
        return LINK.findall(self.text)[-1]

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(REPOSITORY / "manage.py"), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True)


@pytest.fixture
def up(base: Path) -> Iterator[Callable[..., RunningUp]]:
    started: list[RunningUp] = []

    def start(**more: str) -> RunningUp:
        started.append(RunningUp(base, **more))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.interrupt()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Shows the answer itself, not the page that it leads to."""

    def redirect_request(self, *_: object) -> None:
        return None


def is_signed_in_by(link: str) -> bool:
    """Whether a browser that opens the link and presses its button has a session then."""
    jar = CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar), NoRedirect)
    try:
        page = opener.open(link, timeout=20).read().decode()
    except urllib.error.HTTPError:  # 410: spent
        return False
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    if token is None:
        return False
    data = urllib.parse.urlencode({"csrfmiddlewaretoken": token[1]}).encode()
    with suppress(urllib.error.HTTPError):  # 302 into the site
        opener.open(link, data, timeout=20)
    return any(cookie.name == "sessionid" for cookie in jar)


def nothing_runs(base: Path) -> bool:
    engines = EmbeddedPostgres(base).running_process(), EmbeddedValkey(base).running_process()
    return not instance_processes(base) and engines == (None, None)


def test_a_life_of_up(up: Callable[..., RunningUp], base: Path) -> None:
    first = up()
    link = first.wait_until_started()
    assert is_signed_in_by(link)
    assert not is_signed_in_by(link), "a link works once"
    for step in ("PostgreSQL", "Valkey", "migrations", "static files", "first data", "web server"):
        assert re.search(rf"^  {step} +\d+\.\d s", first.text, re.MULTILINE), first.text

    second = up()
    assert second.process.wait(30) == 1
    assert f"already runs in {base} (process {first.process.pid})" in second.text
    assert "Traceback" not in second.text

    left = [process.pid for process in recorded_processes(base).values()]
    left += [process.pid for process in instance_processes(base)]
    first.process.kill()
    first.process.wait()
    assert all(map(is_running, left))

    third = up()
    link = third.wait_until_started()
    assert "An earlier start was killed" in third.text
    assert re.search(r"migrations .* up to date", third.text)
    assert not any(map(is_running, left))

    web = recorded_processes(base)["web"]
    web.kill()
    wait_for(lambda: "web ended unexpectedly (killed by SIGKILL)" in third.text)
    another = third.command("login-link").stdout.strip()
    assert another.startswith(link.partition("/accounts/")[0])
    assert is_signed_in_by(another)

    assert third.interrupt() == 0
    assert third.text.rstrip().endswith("Stopped.")
    assert nothing_runs(base)


def test_a_failing_step_leaves_nothing_behind(up: Callable[..., RunningUp], base: Path) -> None:
    failing = up(TEMPER_PORT="http")
    assert failing.process.wait(60) == 1
    assert "TEMPER_PORT is 'http', which is no port number" in failing.text
    assert "Traceback" not in failing.text
    assert nothing_runs(base)


def test_an_external_server_that_does_not_answer_ends_it_with_a_sentence(
    up: Callable[..., RunningUp], base: Path
) -> None:
    failing = up(DATABASE_URL="postgresql://ann:geheim@127.0.0.1:9/x")
    assert failing.process.wait(60) == 1
    assert "DATABASE_URL (postgresql://127.0.0.1:9/x)" in failing.text
    assert "geheim" not in failing.text
    assert "Traceback" not in failing.text
    assert nothing_runs(base)
