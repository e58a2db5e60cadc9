"""`manage.py up`: from nothing to a page in the browser, and back to nothing on Ctrl+C.

Called by the management command. The order matters: what an earlier `up` left is ended first,
then the engines, the schema, the first data, the web server, the workers. The page opens before
the model is ready, since its preparation is a process beside the others.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from webapp.launcher import addresses, database_steps, joining, plan
from webapp.launcher.console import Console, installed_size, readable_size, size_of
from webapp.launcher.errors import LauncherError
from webapp.launcher.gpus import find_gpus
from webapp.launcher.instance_lock import instance_lock
from webapp.launcher.leftovers import take_down_leftovers
from webapp.launcher.logs import log_path, tail
from webapp.launcher.paths import (
    REPOSITORY,
    RESTORE_NOTE,
    data_dir,
    uses_embedded_postgres,
    uses_embedded_valkey,
)
from webapp.launcher.privacy import make_private
from webapp.launcher.process_tree import ProcessTree
from webapp.launcher.servers import start_postgres, start_valkey
from webapp.launcher.static_files import collect_static

WEB_PATIENCE_S = 60.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """A stop signal came while things were still being started."""


@dataclass
class Up:
    """One life of the installation on this machine."""

    workers_only: bool = False
    """Serve queues of an installation whose web server runs on another host."""

    def __post_init__(self) -> None:
        """Read the environment; a wrong value ends it here, before anything is started."""
        if self.workers_only and (uses_embedded_postgres() or uses_embedded_valkey()):
            raise LauncherError("--workers-only needs DATABASE_URL and REDIS_URL of the web host.")
        self.console = Console()
        self.base = data_dir()
        self.queues = plan.worker_queues()
        self.gpus = find_gpus()
        self.stop = threading.Event()
        self.is_starting = True
        self.listener: socket.socket | None = None

    def run(self) -> None:
        """Start, watch, stop. Returns when everything has ended."""
        make_private(self.base)
        with instance_lock(self.base):
            self._refuse_half_restored()
            tree = ProcessTree(self.base, self.console.say)
            with self._signals_handled(tree):
                try:
                    self._start(tree)
                    self.is_starting = False
                    tree.watch(self.stop)
                except StopRequested:
                    pass
                finally:
                    self.is_starting = False
                    self._stop(tree)

    def _refuse_half_restored(self) -> None:
        """A restore that was interrupted is finished first: its database may be empty."""
        note = self.base / RESTORE_NOTE
        if note.exists():
            raise LauncherError(
                f"A restore of {note.read_text()} was interrupted: repeat `manage.py restore "
                f"{note.read_text()}`, or remove {note} to begin without it."
            )

    def _start(self, tree: ProcessTree) -> None:
        """Every step until the page can be opened."""
        say = self.console.say
        say(f"Temper starts in {REPOSITORY}, state in {self.base}")
        take_down_leftovers(self.base, say)
        if not self.workers_only:
            self.listener = addresses.open_listener(addresses.host(), self.base)
        with self.console.step("hardware") as notes:
            notes += [str(gpu) for gpu in self.gpus] or ["no GPU: training runs on the CPU"]
        with self.console.step("packages") as notes:
            notes += [f"{installed_size()} in {sys.prefix}"]
        start_postgres(tree, self.base, self.console)
        start_valkey(tree, self.base, self.console)
        if self.workers_only:
            with self.console.step("joining") as notes:
                joining.require_same_installation()
                notes += ["same storage, code and schema as the web host"]
        else:
            self._prepare_database()
            self._start_web(tree)
        self._start_workers(tree)
        if not self.workers_only:
            say(
                f"\nSign in, once, within 15 minutes (another: ./manage.py login-link):\n"
                f"  {database_steps.login_url()}\n"
            )
        database_steps.disconnect()
        say("Ctrl+C stops everything.")

    def _prepare_database(self) -> None:
        """Schema, static files, first data."""
        with self.console.step("migrations") as notes:
            applied = database_steps.migrate()
            notes += [f"{applied} applied" if applied else "up to date"]
        with self.console.step("static files") as notes:
            collected = collect_static(self.base)
            size = readable_size(size_of(self.base / "staticfiles"))
            notes += [size if collected else f"{size}, unchanged"]
        with self.console.step("first data") as notes:
            database_steps.seed()
            joining.leave_markers()
            notes += [f"database {readable_size(database_steps.database_size())}"]

    def _start_web(self, tree: ProcessTree) -> None:
        """The web server, until it answers a request."""
        if self.listener is None:
            return
        with self.console.step("web server") as notes:
            url = addresses.base_url(addresses.host(), self.listener.getsockname()[1])
            child = tree.start_child(plan.web(self.listener))
            give_up = time.monotonic() + WEB_PATIENCE_S
            while not addresses.answers(url):
                if child.has_ended() or time.monotonic() > give_up:
                    words = tail(self.base, child.name)
                    raise LauncherError(f"The web server does not start. Its last words:\n{words}")
                time.sleep(0.1)
            addresses.remember_url(self.base, url)
            notes += [url]

    def _start_workers(self, tree: ProcessTree) -> None:
        """Workers, beat and the preparation of the model; none is waited for."""
        with self.console.step("workers") as notes:
            for queue in self.queues:
                tree.start_child(plan.worker(queue, len(self.gpus)))
            notes += [f"queues {', '.join(self.queues) or 'none'}"]
            if not self.workers_only:
                tree.start_child(plan.beat(self.base))
            if plan.serves_training(self.queues):
                tree.start_child(plan.model_preparation(self._model_is_ready))
                notes += [f"model in preparation, log {log_path(self.base, 'prepare-model')}"]

    def _model_is_ready(self, seconds: float) -> str:
        """What to say when the preparation has ended well."""
        size = readable_size(size_of(self.base / "models"))
        return f"  {'model':<20} {seconds:6.1f} s  ready, {size}"

    def _stop(self, tree: ProcessTree) -> None:
        """Take everything down in order."""
        self.console.say("Stopping: runs write a checkpoint first. Ctrl+C again forces it.")
        tree.stop((plan.WORKER_NAMES, (plan.WEB_NAME,)))
        self.console.say("Stopped.")

    @contextmanager
    def _signals_handled(self, tree: ProcessTree) -> Iterator[None]:
        """The first signal stops, the second forces."""

        def on_signal(*_: object) -> None:
            if self.stop.is_set():
                tree.forced.set()
                return
            self.stop.set()
            if self.is_starting:
                raise StopRequested

        previous = {
            number: signal.signal(number, on_signal)
            for number in STOP_SIGNALS
            # `nohup` ignores SIGHUP on purpose; a shell's `&` ignores SIGINT, which is no reason.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
