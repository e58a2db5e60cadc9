"""Every environment variable that Temper reads: its meaning, its default, its rule.

Checked by `webapp.settings`, so that each process refuses to start on a wrong value or on a name
that nobody knows; listed in docs/operations.md, which a test compares with this. A variable of the
kind `secret` may also come from a file: NAME_FILE holds its path. What would surprise: nothing here
imports Django, since `manage.py up` needs it before there are settings.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from webapp.launcher import value_rules as rules
from webapp.launcher.errors import LauncherError

PREFIX = "TEMPER_"
TEST_PREFIX = "TEMPER_TEST_"
"""Tests mark their processes by variables whose names end in the number of a test process."""
FILE_SUFFIX = "_FILE"
LONGEST_SECRET_BYTES = 65_536
LOOPBACK = frozenset({"127.0.0.1", "::1", "[::1]", "localhost"})
Kind = Literal["plain", "secret", "internal"]


class Variable(NamedTuple):
    """One variable."""

    name: str
    meaning: str
    """For the table in docs/operations.md."""
    default: str = ""
    """In words, as in that table."""
    rule: rules.Rule = rules.any_text
    kind: Kind = "plain"
    """`internal` ones are set by Temper for its own processes, or by its tests."""


VARIABLES = (
    Variable("TEMPER_DATA_DIR", "all state", "`var/` in the checkout"),
    Variable(
        "DATABASE_URL",
        "a PostgreSQL (14 or newer) of your own: `postgresql://user:password@host:5432/name`",
        "the embedded one",
        rules.database_url,
        "secret",
    ),
    Variable(
        "REDIS_URL",
        "a Redis or Valkey of your own: `redis://host:6379/0`",
        "the embedded one",
        rules.redis_url,
        "secret",
    ),
    Variable(
        "SECRET_KEY",
        "Django's key, 50 characters or more; give the same to every web host",
        "made once in the data directory",
        rules.key,
        "secret",
    ),
    Variable(
        "TEMPER_WORKER_QUEUES",
        "queues that this machine serves: `train` (runs), `cpu` (short tasks); empty for none",
        "`train,cpu`",
        rules.queues,
    ),
    Variable("TEMPER_HOST", "address that the web server listens on", "`127.0.0.1`"),
    Variable("TEMPER_PORT", "its port; must be free", "first free from 8000", rules.port),
    Variable(
        "TEMPER_ALLOWED_HOSTS",
        "names under which browsers may reach it, comma list",
        "`localhost,127.0.0.1,[::1]`",
        rules.hosts,
    ),
    Variable(
        "TEMPER_TRUSTED_ORIGINS",
        "origins behind a proxy that changes the host name, as `https://temper.example`",
        "none",
        rules.origins,
    ),
    Variable(
        "TEMPER_TRUSTED_PROXIES",
        "addresses of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed",
        "none",
        rules.networks,
    ),
    Variable(
        "TEMPER_TLS",
        "`true` when a proxy ends TLS: secure cookies, HSTS, redirect to https; needs "
        "`TEMPER_TRUSTED_PROXIES`",
        "`false`",
        rules.yes_or_no,
    ),
    Variable(
        "TEMPER_HSTS",
        "what browsers must reach by https from then on: `host`, `subdomains`, or `preload`",
        "`host`",
        rules.one_of("host", "subdomains", "preload"),
    ),
    Variable(
        "TEMPER_UMASK",
        "permissions that new files lack, octal; `007` when a group shares the files",
        "`077`: this user alone",
        rules.umask,
    ),
    Variable(
        "TEMPER_METRICS_TOKEN",
        "opens `/metrics` to `Authorization: Bearer TOKEN`; 24 characters or more",
        "closed",
        rules.token,
        "secret",
    ),
    Variable(
        "TEMPER_WEBHOOK_ALLOW_PRIVATE",
        "`true` lets webhooks go to private and loopback addresses",
        "`false`",
        rules.yes_or_no,
    ),
    Variable(
        "TEMPER_LOG_LEVEL",
        "`DEBUG`, `INFO`, `WARNING` or `ERROR`",
        "`INFO`",
        rules.one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    ),
    Variable(
        "TEMPER_LOG_FORMAT",
        "`text`, or `json` for one object a line in the logs of web server, workers and beat",
        "`text`",
        rules.one_of("text", "json"),
    ),
    Variable("TEMPER_LOG_REQUESTS", "`true` logs each request", "`false`", rules.yes_or_no),
    Variable(
        "TEMPER_DEBUG",
        "`true` shows Django's error pages; never where others can reach it",
        "`false`",
        rules.yes_or_no,
    ),
    Variable(
        "TEMPER_URL", "address to which the command `temper` talks: `docs/api.md`", "its own file"
    ),
    Variable("TEMPER_TOKEN", "token that the command `temper` shows", "its own file"),
    Variable("TEMPER_CHROMIUM", "the browser that tests drive", "first on `PATH`"),
    Variable(
        "TEMPER_DATABASE_POOL",
        "`true` in the web server: it pools connections",
        rule=rules.yes_or_no,
        kind="internal",
    ),
    Variable("TEMPER_INSTANCE", "marks the processes of one `up`", kind="internal"),
    Variable("TEMPER_MODELS_DIR", "where a trainer finds prepared models", kind="internal"),
    Variable("TEMPER_TRAINER_OF", "marks the processes of one trainer", kind="internal"),
)
BY_NAME = {variable.name: variable for variable in VARIABLES}


def read_variable(name: str, environment: Mapping[str, str] | None = None) -> str:
    """The value, from its file where NAME_FILE says so; empty when it is not set.

    Raises LauncherError for a file that cannot be read, or when both are set.
    """
    environment = os.environ if environment is None else environment
    value = environment.get(name, "")
    file = environment.get(name + FILE_SUFFIX, "") if BY_NAME[name].kind == "secret" else ""
    if not file:
        return value
    if value:
        raise LauncherError(f"{name} and {name}{FILE_SUFFIX} are both set: keep one of them.")
    return _read_file(name + FILE_SUFFIX, Path(file))


def check_environment(environment: Mapping[str, str] | None = None) -> None:
    """Raises LauncherError with one line for each variable that is wrong or unknown."""
    environment = os.environ if environment is None else environment
    problems = [*_unknown(environment), *_wrong(environment), *_contradictions(environment)]
    if problems:
        raise LauncherError("\n".join(["The environment is not right.", *problems]))


def _unknown(environment: Mapping[str, str]) -> list[str]:
    """Names that begin like ours and are none: a misspelt one would be ignored in silence."""
    names = set(BY_NAME) | {each.name + FILE_SUFFIX for each in VARIABLES if each.kind == "secret"}
    offered = [
        each.name.removeprefix(PREFIX)  # which all have, so that it says nothing
        for each in VARIABLES
        if each.kind != "internal" and each.name.startswith(PREFIX)
    ]
    problems = []
    for name in sorted(environment):
        if name.startswith(TEST_PREFIX) or name in names:
            continue
        if name.startswith(PREFIX):
            near = difflib.get_close_matches(name.removeprefix(PREFIX), offered, n=1)
            hint = f"did you mean {PREFIX}{near[0]}?" if near else "docs/operations.md lists all."
            problems.append(f"  {name} is no variable of Temper: {hint}")
    return problems


def _wrong(environment: Mapping[str, str]) -> list[str]:
    """Values that break their rule. An empty value is as good as none, but for the queues."""
    problems = []
    for variable in VARIABLES:
        try:
            value = read_variable(variable.name, environment)
        except LauncherError as error:
            problems.append(f"  {error}")
            continue
        wrong = variable.rule(value) if value else ""
        if wrong:
            problems.append(f"  {variable.name} {wrong}.")
    return problems


def _contradictions(environment: Mapping[str, str]) -> list[str]:
    """Variables that need each other, or forbid each other."""
    problems = []
    has_tls = environment.get("TEMPER_TLS", "").lower() in rules.YES
    if has_tls and not rules.split_list(environment.get("TEMPER_TRUSTED_PROXIES", "")):
        problems.append(
            "  TEMPER_TLS is true but TEMPER_TRUSTED_PROXIES is empty: name the address of the "
            "proxy that ends TLS, such as 127.0.0.1, else every request is sent to https for ever."
        )
    shows_errors = environment.get("TEMPER_DEBUG", "").lower() in rules.YES
    if shows_errors and environment.get("TEMPER_HOST", "") not in {"", *LOOPBACK}:
        problems.append(
            "  TEMPER_DEBUG is true and TEMPER_HOST lets other machines in: error pages show the "
            "code and its values. Drop one of them."
        )
    return problems


def _read_file(name: str, path: Path) -> str:
    """A secret without the line end that editors add. Raises LauncherError."""
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_SECRET_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise LauncherError(f"{name} names {path}, which cannot be read: {reason}.") from error
    if not content:
        raise LauncherError(f"{name} names {path}, which is empty.")
    return content
