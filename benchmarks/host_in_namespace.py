"""A host that is none: processes with a name, an address, a user and a process table of their own.

Used by `two_hosts.py`, as root on Linux. A host is a network namespace with a wire to this machine,
and inside it a namespace of host name, of mounts and of processes. Killing its first process is a
power cut: the kernel ends everything in it at once. What would surprise: a checkout in a folder
that other users may not enter (root's home) is shown to the host alone, by mounts that nobody else
sees; no mode of a file outside is changed.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED_PROGRAMS = ("ip", "unshare", "setpriv", "mount")
SHARED_GROUP = 7001
"""Any number; the hosts' users have it in common."""


def missing() -> list[str]:
    """What this machine lacks for the drill, in words."""
    if os.geteuid() != 0:
        return ["root: separate users and network namespaces cannot be made without it"]
    lacking = [f"the program {name}" for name in NEEDED_PROGRAMS if shutil.which(name) is None]
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return lacking if tried.returncode == 0 else [*lacking, f"namespaces: {tried.stderr.strip()}"]


def ordinary_users(count: int) -> list[pwd.struct_passwd]:
    """Accounts of this machine that are not root."""
    return sorted((each for each in pwd.getpwall() if each.pw_uid), key=lambda e: e.pw_uid)[:count]


@dataclass
class Wire:
    """A network namespace and the two ends of the wire into it."""

    name: str
    number: int

    @property
    def here(self) -> str:
        """This machine's end."""
        return f"10.231.{self.number}.1"

    @property
    def there(self) -> str:
        """The host's end."""
        return f"10.231.{self.number}.2"

    def lay(self) -> None:
        """Make it. Raises CalledProcessError."""
        self.cut()
        end, inside = f"tw{self.number}", f"tw{self.number}i"
        for command in (
            f"netns add {self.name}",
            f"link add {end} type veth peer name {inside} netns {self.name}",
            f"addr add {self.here}/24 dev {end}",
            f"link set {end} up",
            f"-n {self.name} addr add {self.there}/24 dev {inside}",
            f"-n {self.name} link set {inside} up",
            f"-n {self.name} link set lo up",
        ):
            subprocess.run(["ip", *command.split()], check=True)

    def cut(self) -> None:
        """Remove it; nothing when there is none."""
        for command in (f"link del tw{self.number}", f"netns del {self.name}"):
            subprocess.run(["ip", *command.split()], capture_output=True, check=False)


@dataclass
class Host:
    """One host and what runs on it."""

    name: str
    user: pwd.struct_passwd
    base: Path
    wire: Wire | None
    """None for the host that has this machine's own network."""
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def console(self) -> Path:
        """What `manage.py up` says."""
        return self.base.parent / f"{self.name}.console"

    def start(self, *arguments: str) -> None:
        """`manage.py up` with arguments, as the host's user."""
        inner = shlex.join([sys.executable, str(ROOT / "manage.py"), "up", *arguments])
        user = f"--reuid={self.user.pw_uid} --regid={SHARED_GROUP} --clear-groups"
        script = f"set -e\nhostname {self.name}\n{open_the_way()}\nexec setpriv {user} {inner}\n"
        network = ["ip", "netns", "exec", self.wire.name] if self.wire else []
        spaces = ["unshare", "--mount", "--uts", "--pid", "--fork", "--mount-proc"]
        with self.console.open("ab") as out:
            self.process = subprocess.Popen(
                [*network, *spaces, "sh", "-c", script],
                env={"PATH": os.environ["PATH"], "HOME": str(self.base), **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd="/",
            )

    def said(self) -> str:
        """Its console so far."""
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def has_ended(self) -> bool:
        """Whether nothing of it runs."""
        return self.process is None or self.process.poll() is not None

    def cut_power(self) -> None:
        """SIGKILL to the host's first process, with which the kernel kills all others.

        To kill `unshare` would not do: its wish that its child dies with it ends when that child
        becomes another user.
        """
        if self.process is None or self.process.poll() is not None:
            return
        for pid in self._first_process():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def shut_down(self, patience_s: float) -> None:
        """Ctrl+C to `manage.py up`, then the power."""
        if self.process is None or self.process.poll() is not None:
            return
        for pid in self._first_process():
            os.kill(pid, signal.SIGINT)
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.cut_power()

    def _first_process(self) -> list[int]:
        """The child of `unshare`, number 1 in the host's own table; empty when it has ended."""
        assert self.process is not None
        command = ["pgrep", "-P", str(self.process.pid)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]


def open_the_way() -> str:
    """Shell lines that show checkout and interpreter to every user of the host's own mounts."""
    needed = [Path(sys.base_prefix).resolve(), ROOT, Path(sys.prefix).resolve()]
    closed = {
        parent for path in needed for parent in path.parents if not parent.stat().st_mode & 0o001
    }
    lines = []
    for folder in sorted(closed, key=lambda each: len(each.parts)):
        inside = [path for path in dict.fromkeys(needed) if path.is_relative_to(folder)]
        lines += ["stage=$(mktemp -d)", 'mount -t tmpfs tmpfs "$stage"']
        for number, path in enumerate(inside):
            lines += [f'mkdir "$stage/{number}"', f'mount --bind {path} "$stage/{number}"']
        lines.append(f"mount -t tmpfs -o mode=755 tmpfs {folder}")
        for number, path in enumerate(inside):
            lines += [f"mkdir -p {path}", f'mount --move "$stage/{number}" {path}']
    return "\n".join(lines)
