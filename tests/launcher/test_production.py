"""docs/deploy.md: its settings pass Django's checks, its files pass their programs' own."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import Client

from tests.architecture.sources import ROOT
from tests.engines import Engines
from tests.launcher.conftest import wait_for
from webapp.accounts.models import User

PAGE = (ROOT / "docs" / "deploy.md").read_text()
BLOCKS = dict(re.findall(r"^```\w+\n# (/\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
UNITS = sorted(name for name in BLOCKS if name.endswith(".service"))
TOKEN = "a-token-that-nobody-can-guess"
ALLOWED_IN_TESTS = "DJANGO_ALLOW_ASYNC_UNSAFE"  # Playwright needs it; no deployment has it
HTTPS = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}


@pytest.fixture
def production(tmp_path: Path) -> dict[str, str]:
    """web.env as documented, with its files below a folder of this test."""
    (tmp_path / "metrics_token").write_text(TOKEN)
    text = BLOCKS["/etc/temper/web.env"].replace("/etc/temper", str(tmp_path))
    documented = dict(line.split("=", 1) for line in text.splitlines() if line)
    assert documented["TEMPER_TLS"] == "true"
    inherited = {name: value for name, value in os.environ.items() if name != ALLOWED_IN_TESTS}
    return {**inherited, **documented, "TEMPER_DATA_DIR": str(tmp_path / "state")}


def test_the_documented_settings_pass_the_checks(production: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "INFO"],
        env=production,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


@pytest.mark.parametrize("width", ["subdomains", "preload"])
def test_wider_hsts_passes_them_too(production: dict[str, str], width: str) -> None:
    production["TEMPER_HSTS"] = width
    test_the_documented_settings_pass_the_checks(production)


@pytest.mark.parametrize("name", UNITS)
def test_systemd_reads_the_units(tmp_path: Path, name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("this machine has no systemd-analyze")
    unit = tmp_path / Path(name).name
    unit.write_text(BLOCKS[name].replace("/opt/temper/.venv/bin/python", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    told = [line for line in done.stderr.splitlines() if unit.name in line]
    assert told == []


def test_every_block_names_its_file() -> None:
    assert len(UNITS) == 3
    assert {Path(name).name for name in BLOCKS} >= {"web.env", "worker.env", "servers.env"}


def test_nginx_reads_its_configuration(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    nginx = shutil.which("nginx")
    if nginx is None:
        pytest.skip("this machine has no nginx")
    done = subprocess.run(
        [nginx, "-t", "-c", str(write_nginx(tmp_path, certificate))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def write_nginx(
    folder: Path, certificate: tuple[Path, Path], changes: dict[str, str] | None = None
) -> Path:
    """A whole configuration around the documented one; what it needs lies in the folder."""
    site = BLOCKS["/etc/nginx/conf.d/temper.conf"]
    for name, path in zip(("fullchain", "privkey"), certificate, strict=True):
        site = re.sub(rf"/etc/letsencrypt\S+/{name}\.pem", str(path), site)
    for documented, used in (changes or {}).items():
        assert documented in site
        site = site.replace(documented, used)
    temp = "\n".join(
        f"{each}_temp_path {folder}/{each};"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temp}\n{site}}}\n"
    )
    return file


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """One that nobody trusts, for temper.example."""
    if shutil.which("openssl") is None:
        pytest.skip("this machine has no openssl")
    chain, key = tmp_path / "fullchain.pem", tmp_path / "privkey.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=temper.example"]
    subprocess.run(
        [*command, "-keyout", str(key), "-out", str(chain)], capture_output=True, check=True
    )
    return chain, key


@pytest.fixture
def serve(
    engines: Engines, production: dict[str, str]
) -> Iterator[Callable[..., http.client.HTTPConnection]]:
    """The web server under the documented settings, without a proxy before it."""
    started: list[subprocess.Popen[bytes]] = []
    listeners: list[socket.socket] = []

    def start(**more: str) -> http.client.HTTPConnection:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        state = {"TEMPER_DATA_DIR": str(engines.home)}
        environment = engines.child_environment(**production) | more | state
        if not (engines.home / "staticfiles" / "staticfiles.json").exists():
            collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "-v0"]
            subprocess.run(collect, cwd=ROOT, env=environment, check=True)
        command = [sys.executable, "-m", "webapp.launcher.serve", str(listener.fileno())]
        started.append(
            subprocess.Popen(command, env=environment, cwd=ROOT, pass_fds=[listener.fileno()])
        )
        connection = http.client.HTTPConnection("127.0.0.1", listener.getsockname()[1], timeout=30)
        wait_for(lambda: answer(connection, "/healthz").status == 200, 60)
        return connection

    yield start
    for process in started:
        process.terminate()
        process.wait(20)
    for listener in listeners:
        listener.close()


def answer(
    connection: http.client.HTTPConnection, path: str, host: str = "temper.example", **headers: str
) -> http.client.HTTPResponse:
    """Ask once; header names are spelled with underscores."""
    spelled = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers={"Host": host, **spelled})
    response = connection.getresponse()
    response.body = response.read()  # type: ignore[attr-defined]
    return response


@pytest.mark.django_db(transaction=True)
def test_the_server_believes_its_proxy_alone(
    serve: Callable[..., http.client.HTTPConnection],
) -> None:
    server = serve()
    page = answer(server, "/accounts/login/", **HTTPS)
    assert page.status == 200
    assert page.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert "; Secure" in page.headers["Set-Cookie"], "the token against forged forms"
    plain = answer(server, "/accounts/login/")
    assert (plain.status, plain.headers["Location"]) == (
        301,
        "https://temper.example/accounts/login/",
    )
    sheet = re.search(rb"/static/css/base\.[0-9a-f]{12}\.css", page.body)  # type: ignore[attr-defined]
    assert sheet, "names carry a hash"
    assert "immutable" in answer(server, sheet[0].decode(), **HTTPS).headers["Cache-Control"]
    assert answer(server, "/readyz", host="10.0.0.7:8000").status == 200
    assert answer(server, "/metrics").status == 401
    assert answer(server, "/metrics", **HTTPS).status == 401
    opened = answer(server, "/metrics", Authorization=f"Bearer {TOKEN}")
    assert opened.status == 200
    assert b"temper_runs" in opened.body  # type: ignore[attr-defined]
    stranger = answer(server, "/accounts/login/", host="evil.example", **HTTPS)
    assert stranger.status == 400
    assert b"TEMPER_ALLOWED_HOSTS" in stranger.body  # type: ignore[attr-defined]


@pytest.mark.django_db(transaction=True)
def test_headers_of_anybody_else_are_ignored(
    serve: Callable[..., http.client.HTTPConnection],
) -> None:
    server = serve(TEMPER_TRUSTED_PROXIES="10.9.8.7")
    assert answer(server, "/accounts/login/", **HTTPS).status == 301


@pytest.mark.django_db(transaction=True)
def test_without_a_token_the_figures_are_closed(
    serve: Callable[..., http.client.HTTPConnection],
) -> None:
    server = serve(TEMPER_METRICS_TOKEN_FILE="")
    for headers in ({}, HTTPS, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {TOKEN}"}):
        assert answer(server, "/metrics", **headers).status == 403


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def proxy(
    tmp_path: Path,
    certificate: tuple[Path, Path],
    serve: Callable[..., http.client.HTTPConnection],
) -> Iterator[tuple[int, int]]:
    """nginx under the documented configuration before the server; its two ports."""
    nginx = shutil.which("nginx")
    if nginx is None:
        pytest.skip("this machine has no nginx")
    plain, secure = free_port(), free_port()
    changes = {
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl;": f"listen 127.0.0.1:{secure} ssl;",
        "127.0.0.1:8000": f"127.0.0.1:{serve().port}",
    }
    process = subprocess.Popen([nginx, "-c", str(write_nginx(tmp_path, certificate, changes))])
    wait_for(lambda: is_open(secure))
    yield plain, secure
    process.terminate()
    process.wait(20)


def is_open(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


@pytest.mark.django_db(transaction=True)
def test_pages_and_events_come_through_nginx(
    proxy: tuple[int, int], client: Client, django_user_model: type[User]
) -> None:
    plain, secure = proxy
    redirect = answer(http.client.HTTPConnection("127.0.0.1", plain, timeout=30), "/runs/")
    assert (redirect.status, redirect.headers["Location"]) == (301, "https://temper.example/runs/")
    trusting = ssl._create_unverified_context()
    through = http.client.HTTPSConnection("127.0.0.1", secure, timeout=30, context=trusting)
    page = answer(through, "/accounts/login/", X_Forwarded_Proto="http")
    assert page.status == 200, "what a client says of itself is replaced"
    assert page.headers["Strict-Transport-Security"]
    assert answer(through, "/metrics").status == 401
    client.force_login(django_user_model.objects.create_user("ada"))
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    headers = {"Host": "temper.example", "Cookie": cookie}
    through.request("GET", "/live/events?topics=runs", headers=headers)
    stream = through.getresponse()
    assert stream.headers["Content-Type"] == "text/event-stream"
    first = [stream.readline() for _ in range(3)]
    assert first[0].startswith(b"retry: "), "it comes at once, not when a buffer is full"
    through.close()
