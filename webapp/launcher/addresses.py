"""The address of the web server: chosen by `up`, found again by `login-link`.

TEMPER_HOST (127.0.0.1) and TEMPER_PORT (the last one used, else the first free one from 8000)
override the choice.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from webapp.launcher import value_rules
from webapp.launcher.errors import LauncherError
from webapp.launcher.variables import LOOPBACK

DEFAULT_HOST = "127.0.0.1"
FIRST_PORT = 8000
PORTS_TRIED = 100
BACKLOG = 1024
ANY_HOST = {"0.0.0.0", "::"}


def host() -> str:
    """The address that the web server listens on."""
    return os.environ.get("TEMPER_HOST") or DEFAULT_HOST


def open_listener(on_host: str, base: Path) -> socket.socket:
    """A listening socket on TEMPER_PORT when set, else on the last port used or the first free one.

    The last one first, so that bookmarks and open pages find the server again.
    """
    wanted = os.environ.get("TEMPER_PORT")
    if wanted:
        return listener_on(on_host, checked_port(wanted))
    for port in (*last_port(base), *range(FIRST_PORT, FIRST_PORT + PORTS_TRIED)):
        with contextlib.suppress(LauncherError):
            return listener_on(on_host, port)
    last = FIRST_PORT + PORTS_TRIED - 1
    raise LauncherError(
        f"No port of {on_host} from {FIRST_PORT} to {last} is free: set TEMPER_PORT."
    )


def last_port(base: Path) -> list[int]:
    """The port that the server of this installation had when it last ran, if any."""
    try:
        port = urlsplit(_remembered_url(base)).port
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [port] if port else []


def checked_port(text: str) -> int:
    """The number, or a sentence."""
    if wrong := value_rules.port(text):
        raise LauncherError(f"TEMPER_PORT {wrong}.")
    return int(text)


def listener_on(on_host: str, port: int) -> socket.socket:
    """Bind and listen in one go: a bound port alone can still be taken by somebody else."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            on_host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise LauncherError(f"TEMPER_HOST is {on_host!r}: {error}.") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise LauncherError(
            f"Port {port} of {on_host} cannot be used: {error.strerror}."
        ) from error
    return listener


def base_url(on_host: str, port: int) -> str:
    """What a browser on this machine opens."""
    shown = DEFAULT_HOST if on_host in ANY_HOST else on_host
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def remember_url(base: Path, url: str) -> None:
    """Keep the address of the running server for `login-link`."""
    (base / "address.json").write_text(json.dumps({"url": url}))


def _remembered_url(base: Path) -> str:
    """What `remember_url` kept. Raises OSError, ValueError, KeyError or TypeError."""
    return str(json.loads((base / "address.json").read_text())["url"])


def known_url(base: Path) -> str:
    """The address of the server that runs, or ran last; else where it would be looked for first."""
    try:
        return _remembered_url(base)
    except (OSError, ValueError, KeyError, TypeError):
        port = os.environ.get("TEMPER_PORT", str(FIRST_PORT))
        return base_url(host(), int(port) if port.isdigit() else FIRST_PORT)


def public_url(base: Path) -> str:
    """Where people open it: the proxy's origin where one ends TLS, else the server's own address.

    The origin is the first in TEMPER_TRUSTED_ORIGINS, else https and the first name that
    TEMPER_ALLOWED_HOSTS spells out.
    """
    if os.environ.get("TEMPER_TLS", "").lower() not in value_rules.YES:
        return known_url(base)
    origins = value_rules.split_list(os.environ.get("TEMPER_TRUSTED_ORIGINS", ""))
    names = value_rules.split_list(os.environ.get("TEMPER_ALLOWED_HOSTS", ""))
    spelled = [f"https://{name}" for name in names if name[0] not in "*." and name not in LOOPBACK]
    whole = [origin for origin in origins if "*" not in origin]
    return next(iter([*whole, *spelled]), known_url(base))


def answers(url: str) -> bool:
    """Whether the server gives any answer to a request within a second or two."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=2)
    try:
        connection.request("GET", "/accounts/login/")
        return connection.getresponse().status > 0
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
