"""A run loses its host and ends on another, exactly as if nothing had happened.

    python benchmarks/two_hosts.py     (as root on Linux)

Three hosts on one machine: one serves the web, two train. Each has a user, a state folder, a host
name, an address and a process table of its own; they share three folders by path, and one
PostgreSQL and one Valkey over TCP with passwords. One run is left alone. Another loses its host to
a power cut (everything there is killed at once) in the middle of its steps; the other host must end
it, with every point and the weights equal to the undisturbed run's bit for bit. Before that a host
without the shared folders must be refused.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import django
import psycopg

from benchmarks.drill_compare import compare, newest_weights, read_all_series
from benchmarks.fault_drill import TERMINAL, launch, refresh, wait_for
from benchmarks.host_in_namespace import SHARED_GROUP, Host, Wire, missing, ordinary_users
from webapp.launcher import postgres
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.valkey import server_binary

START_LIMIT_S = 180
STOP_LIMIT_S = 90
CUT_AT_STEP = 20
VALKEY_PORT = 6399
SHARED = ("runs", "uploads", "glass", "exports", "models")


@dataclass
class Servers:
    """The two servers, on this machine's ends of the wires."""

    folder: Path
    password: str
    wires: tuple[Wire, ...]
    valkey: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """PostgreSQL and Valkey over TCP, each with a password."""
        addresses = [wire.here for wire in self.wires]
        postgres.SERVER_SETTINGS["listen_addresses"] = ",".join(addresses)
        self.engine = EmbeddedPostgres(self.folder)
        self.engine.start()
        with (self.engine.cluster / "pg_hba.conf").open("a") as rules:
            rules.write("host all temper 10.231.0.0/16 scram-sha-256\n")
        with psycopg.connect(self.engine.url, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE temper PASSWORD '{self.password}'")
            connection.execute("SELECT pg_reload_conf()")
        options = ["--port", str(VALKEY_PORT), "--bind", *addresses, "--save", ""]
        self.valkey = subprocess.Popen(
            [str(server_binary()), *options, "--requirepass", self.password],
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
        )

    def stop(self) -> None:
        """Both."""
        if self.valkey is not None:
            self.valkey.terminate()
            self.valkey.wait()
        self.engine.stop()

    def environment(self, address: str) -> dict[str, str]:
        """Where a host finds them."""
        return {
            "DATABASE_URL": f"postgresql://temper:{self.password}@{address}:5432/temper",
            "REDIS_URL": f"redis://:{self.password}@{address}:{VALKEY_PORT}/0",
        }


def make_host(name: str, user: Any, folder: Path, wire: Wire, servers: Servers, web: bool) -> Host:
    """A host with an empty state folder."""
    base = folder / name / "state"
    base.mkdir(parents=True)
    os.chown(base, user.pw_uid, SHARED_GROUP)
    environment = {
        "TEMPER_DATA_DIR": str(base),
        "TEMPER_UMASK": "007",
        "TEMPER_WORKER_QUEUES": "cpu" if web else "train",
        "OMP_NUM_THREADS": "1",
        **servers.environment(wire.here),
    }
    return Host(name, user, base, None if web else wire, environment)


def share(folder: Path, host: Host) -> None:
    """Link the three folders into a host's state, as a mount would."""
    for name in SHARED:
        target = folder / "shared" / name
        if not target.exists():
            target.mkdir(parents=True)
            os.chown(target, host.user.pw_uid, SHARED_GROUP)
            target.chmod(0o2770)
        place = host.base / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        place.symlink_to(target)


def wait_until(what: str, condition: Callable[[], bool], host: Host) -> None:
    """Poll. Raises SystemExit with the host's console."""
    deadline = time.monotonic() + START_LIMIT_S
    while not condition():
        if time.monotonic() > deadline or (host.has_ended() and not condition()):
            raise SystemExit(f"{host.name}: {what} did not come true:\n{host.said()[-3000:]}")
        time.sleep(0.2)


def start(host: Host, *arguments: str) -> None:
    """Start a host and wait until it serves."""
    host.start(*arguments)
    wait_until("the start", lambda: "Ctrl+C stops" in host.said(), host)
    print(f"  {host.name:<8} user {host.user.pw_name}, up", flush=True)


def refused_alone(host: Host) -> bool:
    """Whether a host without the shared folders is turned away with a sentence."""
    host.start("--workers-only")
    deadline = time.monotonic() + START_LIMIT_S
    while not host.has_ended() and time.monotonic() < deadline:
        time.sleep(0.2)
    said = host.said()
    host.console.unlink()
    return "is not the folder of the web host" in said and "Traceback" not in said


@contextmanager
def three_hosts() -> Iterator[tuple[Host, dict[str, Host], bool]]:
    """The web host, both training hosts by name, and whether the lonely one was refused."""
    folder = Path(tempfile.mkdtemp(prefix="temper-hosts-"))
    folder.chmod(0o755)
    wires = Wire("temper-a", 1), Wire("temper-b", 2)
    for wire in wires:
        wire.lay()
    (folder / "servers").mkdir()
    servers = Servers(folder / "servers", secrets.token_hex(16), wires)
    hosts: list[Host] = []
    try:
        servers.start()
        users = ordinary_users(3)
        web = make_host("web", users[0], folder, wires[0], servers, web=True)
        hosts.append(web)
        share(folder, web)
        start(web)
        _use_models_of(web)
        trainers = {}
        for name, user, wire in zip(("host-a", "host-b"), users[1:], wires, strict=True):
            host = make_host(name, user, folder, wire, servers, web=False)
            hosts.append(host)
            trainers[name] = host
        was_refused = refused_alone(trainers["host-b"])
        print(f"  host-b without shared folders: {'refused' if was_refused else 'NOT REFUSED'}")
        for host in trainers.values():
            share(folder, host)
            start(host, "--workers-only")
        yield web, trainers, was_refused
    finally:
        for host in reversed(hosts):
            host.shut_down(STOP_LIMIT_S)
        servers.stop()
        for wire in wires:
            wire.cut()
        shutil.rmtree(folder, ignore_errors=True)


def _use_models_of(web: Host) -> None:
    """Django in this process, over the same database and folders."""
    os.environ.update({k: v for k, v in web.environment.items() if v})
    os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
    django.setup()


def worker_of(run: Any, attempt: int) -> str:
    """Name of the host that had an attempt."""
    return str(run.attempts.get(number=attempt).worker.partition("@")[2])


def lose_host(run: Any, trainers: dict[str, Host]) -> tuple[str, float]:
    """Cut the power of the host that has the run; its name, and seconds until another has it."""
    wait_for(run, {"running"} | TERMINAL)
    while run.step < CUT_AT_STEP and run.state not in TERMINAL:
        time.sleep(0.05)
        refresh(run)
    if run.state in TERMINAL:
        raise SystemExit(f"{run.name} was {run.state} before the power was cut")
    lost = worker_of(run, run.attempt)
    attempt, began = run.attempt, time.monotonic()
    trainers[lost].cut_power()
    print(f"  {lost} lost its power at step {run.step}", flush=True)
    wait_for(run, {"running"} | TERMINAL, newer_than_attempt=attempt)
    return lost, time.monotonic() - began


def main() -> None:
    """Drill, compare, and end with the RESULT line."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    if lacking := missing():
        print("Skipped: this machine lacks " + "; ".join(lacking))
        print("RESULT " + json.dumps({"skipped": lacking}))
        return
    started = time.monotonic()
    with three_hosts() as (web, trainers, was_refused):
        quiet = launch("undisturbed")
        wait_for(quiet, TERMINAL)
        struck = launch("loses its host")
        lost, seconds = lose_host(struck, trainers)
        wait_for(struck, TERMINAL)
        ended_on = worker_of(struck, struck.attempt)
        wanted = read_all_series(quiet.pk)
        difference = compare(
            wanted,
            read_all_series(struck.pk),
            (newest_weights(quiet.run_dir.root), newest_weights(struck.run_dir.root)),
        )
        result = {
            "users": [host.user.pw_name for host in (web, *trainers.values())],
            "refused_without_storage": was_refused,
            "states": [quiet.state, struck.state],
            "lost": lost,
            "ended_on": ended_on,
            "attempts": struck.attempt,
            "seconds_until_resumed": round(seconds, 1),
            "points_compared": sum(len(points) for points in wanted.values()),
            "gaps": difference.gaps,
            "duplicates": difference.duplicates,
            "unequal_points": difference.unequal_points,
            "unequal_weights": difference.unequal_weights,
        }
    print(f"{struck.name}: lost {lost}, ended on {ended_on}, {difference}")
    if ended_on == lost or struck.attempt < 2:
        raise SystemExit("The run ended where it began: no host was lost, and nothing was shown.")
    print("RESULT " + json.dumps({**result, "seconds": round(time.monotonic() - started)}))


if __name__ == "__main__":
    main()
