"""Exec a program as another user: `python run_as.py [--map U:G | --set U:G] [--dies N] -- CMD`.

Run as a script by `identity.py`, never imported by the application, stdlib only. `--map U:G`
puts the program in a user namespace in which the caller appears as U:G (files stay the caller's
outside); `--set U:G` drops to that user for good, which only root can. `--dies N` has the kernel
send signal N when the starter dies, however it dies.

PostgreSQL refuses to run as root and for a uid without a passwd entry; this is the way round it
that touches no account and no permission of the machine.
"""

from __future__ import annotations

import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1


def fail(message: str) -> None:
    """End with the status of a program that cannot be run."""
    sys.stderr.write(f"run_as: {message}\n")
    raise SystemExit(126)


def call(name: str, *arguments: int) -> None:
    """Call a function of the C library and turn its errno into a message."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        fail(f"{name}: {os.strerror(ctypes.get_errno())}")


def write(path: str, text: str) -> None:
    """Write one line of a namespace's maps."""
    try:
        with open(path, "w", encoding="ascii") as handle:
            handle.write(text)
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def pair(text: str) -> tuple[int, int]:
    """Parse U:G."""
    user, _, group = text.partition(":")
    return int(user), int(group)


def enter_namespace(user: int, group: int) -> None:
    """Map the caller, and only the caller, to user:group in a fresh user namespace."""
    outer_user, outer_group = os.geteuid(), os.getegid()
    call("unshare", CLONE_NEWUSER)
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{user} {outer_user} 1")
    write("/proc/self/gid_map", f"{group} {outer_group} 1")


def drop_to(user: int, group: int) -> None:
    """Become user:group with no way back."""
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def main(arguments: list[str]) -> None:
    """Apply the options in order, then become the program."""
    starter = os.getppid()
    options, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    for name, value in zip(options[::2], options[1::2], strict=True):
        if name == "--map":
            enter_namespace(*pair(value))
        elif name == "--set":
            drop_to(*pair(value))
        elif name == "--dies":
            call("prctl", PR_SET_PDEATHSIG, int(value), 0, 0, 0)
            if os.getppid() != starter:
                fail("the starter is gone")
        else:
            fail(f"unknown option {name}")
    try:
        os.execv(command[0], command)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
