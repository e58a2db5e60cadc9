"""What the value of an environment variable must be. Used by the list in `variables.py`.

A rule takes the text and returns what is wrong with it in words that follow the variable's name,
or an empty string. Nothing of a secret may be in those words.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from training_core.contract.tasknames import QUEUE_OF_TASK

Rule = Callable[[str], str]

YES, NO = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})
SHORTEST_TOKEN = 24
SHORTEST_KEY = 50
HOST = re.compile(r"^(\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])$")
QUEUES = tuple(sorted(set(QUEUE_OF_TASK.values()), reverse=True))


def any_text(_: str) -> str:
    """Whatever it is."""
    return ""


def yes_or_no(text: str) -> str:
    """A switch."""
    return "" if text.lower() in YES | NO else f"must be true or false, not {text!r}"


def one_of(*words: str) -> Rule:
    """One of a few words."""

    def rule(text: str) -> str:
        return "" if text in words else f"must be {' or '.join(words)}, not {text!r}"

    return rule


def port(text: str) -> str:
    """A port number."""
    is_port = text.isascii() and text.isdigit() and 0 < int(text) < 65536
    return "" if is_port else f"is {text!r}, which is no port number (1 to 65535)"


def umask(text: str) -> str:
    """An octal mask that leaves the owner everything."""
    try:
        mask = int(text, 8)
    except ValueError:
        mask = -1
    if 0 <= mask <= 0o777 and not mask & 0o700:
        return ""
    return f"is {text!r}; it must be octal and leave its owner everything, like 077 or 007"


def queues(text: str) -> str:
    """Queues that tasks are sent to; none is a machine that serves the web alone."""
    for name in split_list(text):
        if name not in QUEUES:
            return f"names a queue {name!r}, to which nothing is sent: use {', '.join(QUEUES)}"
    return ""


def hosts(text: str) -> str:
    """Names as browsers send them, without scheme and port."""
    for name in split_list(text):
        if not HOST.match(name):
            return (
                f"has {name!r}: write names alone, without https:// and without a port, such as "
                "temper.example,10.0.0.5"
            )
    return "" if split_list(text) else "is empty: name at least one host"


def origins(text: str) -> str:
    """Scheme and name."""
    for origin in split_list(text):
        parts = urlsplit(origin)
        if parts.scheme not in {"http", "https"} or not parts.netloc or parts.path:
            return f"has {origin!r}: write scheme and name, such as https://temper.example"
    return ""


def networks(text: str) -> str:
    """Addresses or networks."""
    for name in split_list(text):
        try:
            ipaddress.ip_network(name)
        except ValueError:
            return f"has {name!r}, which is no address or network such as 10.0.0.0/8"
    return ""


def token(text: str) -> str:
    """A secret that nobody guesses."""
    if len(text) >= SHORTEST_TOKEN and text.isascii() and not re.search(r"\s", text):
        return ""
    return (
        f"must be at least {SHORTEST_TOKEN} characters without spaces; "
        '`python -c "import secrets; print(secrets.token_urlsafe(32))"` prints one'
    )


def key(text: str) -> str:
    """Django's key."""
    if len(text) >= SHORTEST_KEY and len(set(text)) >= 5:
        return ""
    return (
        f"must be at least {SHORTEST_KEY} characters; "
        '`python -c "import secrets; print(secrets.token_urlsafe(50))"` prints one'
    )


def database_url(text: str) -> str:
    """PostgreSQL only."""
    scheme = urlsplit(text).scheme
    if scheme in {"postgres", "postgresql"}:
        return _wrong_port(text)
    return (
        f"begins with {scheme or 'nothing'}:// but Temper needs PostgreSQL: "
        "postgresql://user:password@host:5432/name"
    )


def redis_url(text: str) -> str:
    """Redis or Valkey."""
    scheme = urlsplit(text).scheme
    if scheme in {"redis", "rediss", "unix"}:
        return _wrong_port(text)
    return f"begins with {scheme or 'nothing'}:// but must be redis://host:6379/0 or rediss://"


def _wrong_port(url: str) -> str:
    """A port that is none is most often a password that was not escaped."""
    try:
        _ = urlsplit(url).port
    except ValueError:
        return "has no valid port: must a sign in the password be written as %2F, %3A or %40?"
    return ""


def split_list(text: str) -> list[str]:
    """The parts of a comma-separated list."""
    return [part.strip() for part in text.split(",") if part.strip()]
