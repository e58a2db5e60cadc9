"""Which user PostgreSQL runs as on this machine, decided once per start.

Called by `postgres.py`. PostgreSQL refuses root and a uid that has no passwd entry. In that
order: the caller itself; the caller under another number in a user namespace; for root without
namespaces (a plain container) the account `nobody`. What would surprise: `nobody` may reach
neither the checkout nor `var/`, so the engine and its data may then live in /var/lib/temper.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from webapp.launcher.errors import LauncherError

RUN_AS = Path(__file__).with_name("run_as.py")
FALLBACK_ACCOUNT = "nobody"
PROBE_TIMEOUT_S = 30
Kind = Literal["caller", "namespace", "nobody"]
IDENTITY_WORDS: dict[Kind, str] = {
    "caller": "",
    "namespace": "in a user namespace, since it refuses this user",
    "nobody": "as the account nobody, since it refuses this user",
}


@dataclass(frozen=True)
class Identity:
    """How to start a program as the chosen user, and who owns its files outside."""

    kind: Kind
    options: tuple[str, ...]
    file_uid: int
    file_gid: int

    @property
    def words(self) -> str:
        """For who reads the start's report; empty when there is nothing to say."""
        return IDENTITY_WORDS[self.kind]

    def command(self, *program: str, death_signal: int = 0) -> list[str]:
        """The command line that runs `program` as this user."""
        options = list(self.options)
        if death_signal:
            # Last: the kernel forgets the signal when the credentials change.
            options += ["--dies", str(death_signal)]
        if not options:
            return list(program)
        return [sys.executable, "-I", "-S", str(RUN_AS), *options, "--", *program]

    def can_run(self, *program: str) -> bool:
        """Whether the program, tried now, ends well as this user."""
        try:
            tried = subprocess.run(
                self.command(*program),
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=PROBE_TIMEOUT_S,
                cwd="/",
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return tried.returncode == 0


def caller() -> Identity:
    """The user who runs this process."""
    return Identity("caller", (), os.geteuid(), os.getegid())


def in_namespace() -> Identity | None:
    """The caller under the number of some ordinary account; None without such an account."""
    accounts = [entry for entry in pwd.getpwall() if entry.pw_uid > 0]
    if not accounts:
        return None
    inside = min(accounts, key=lambda entry: entry.pw_uid)
    option = ("--map", f"{inside.pw_uid}:{inside.pw_gid}")
    return Identity("namespace", option, os.geteuid(), os.getegid())


def as_nobody() -> Identity | None:
    """The account `nobody`; None where the machine has none."""
    try:
        entry = pwd.getpwnam(FALLBACK_ACCOUNT)
    except KeyError:
        return None
    option = ("--set", f"{entry.pw_uid}:{entry.pw_gid}")
    return Identity("nobody", option, entry.pw_uid, entry.pw_gid)


def has_passwd_entry() -> bool:
    """Whether the caller's uid has a name on this machine."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return True


def choose_identity(probe: Path) -> Identity:
    """The first identity that can run `probe --version`; `nobody` is taken without that test."""
    if os.geteuid() != 0 and has_passwd_entry():
        return caller()
    mapped = in_namespace()
    if mapped and mapped.can_run(str(probe), "--version"):
        return mapped
    dropped = as_nobody() if os.geteuid() == 0 else None
    if dropped:
        return dropped
    raise LauncherError(
        f"PostgreSQL cannot run as uid {os.geteuid()}: it has no passwd entry and this machine "
        "allows no user namespaces. Run Temper as an ordinary user, or set DATABASE_URL."
    )
