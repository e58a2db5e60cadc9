"""One trainer process and everything it starts: begin, watch, signal, clear away.

Used by `workers.supervisor`. The process is exec'd in a session of its own, with its output in
`console.log` and a pipe on its stdin that nobody writes to: when the supervisor dies, however it
dies, the pipe closes and the trainer ends itself. What would surprise: the process is not reaped
until its whole group has been killed, so that its id cannot belong to somebody else meanwhile.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from webapp.launcher.paths import REPOSITORY

TRAINER_COMMAND = (sys.executable, "-m", "workers.trainer_main")
MARK = "TEMPER_TRAINER_OF"
"""Environment variable by which a trainer's descendants are found, wherever they have hidden."""
WITHHELD = {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"}
"""The trainer needs no database."""
SECRET_WORDS = {"PASSWORD", "PASSWD", "SECRET", "SECRETS", "TOKEN", "KEY", "KEYS", "CREDENTIALS"}
"""A variable with one of these words in its name is not for the trainer, who runs model code."""
HUB_SECRETS = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}
"""Except what opens the model that a run names."""
FIRST_TO_GO = "700"
"""Out of memory, the kernel should take a trainer, which resumes, before database or web."""
FIXED_HASH_SEED = "0"
"""Some question generators walk through sets: their questions repeat only under a fixed seed."""
CONSOLE_TAIL_BYTES = 4_000
CONSOLE_TAIL_LINES = 20


def is_withheld(name: str) -> bool:
    """Whether a variable of the worker is kept from its trainers."""
    is_secret = not SECRET_WORDS.isdisjoint(name.upper().split("_"))
    return name.removesuffix("_FILE") in WITHHELD or (is_secret and name not in HUB_SECRETS)


class TrainerProcess:
    """A started trainer."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        mark: str,
        console: Path,
        device: str,
        models_dir: Path,
    ) -> None:
        """Start it. Raises OSError when that fails."""
        self.mark = mark
        self.console = console
        console.parent.mkdir(parents=True, exist_ok=True)
        environment = {
            name: value for name, value in os.environ.items() if not is_withheld(name)
        } | {
            MARK: mark,
            "CUDA_VISIBLE_DEVICES": device,
            "TEMPER_MODELS_DIR": str(models_dir),
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONHASHSEED": FIXED_HASH_SEED,
        }
        with console.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY,
                env=environment,
                start_new_session=True,
            )
        self.pid = self._process.pid
        with suppress(OSError):
            Path(f"/proc/{self.pid}/oom_score_adj").write_text(FIRST_TO_GO)

    def is_running(self) -> bool:
        """Whether the process itself lives; it is looked at, not reaped."""
        if self._process.returncode is not None:
            return False
        flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self.pid, flags) is None

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children; nothing when they are gone."""
        if self._process.returncode is None:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                return

    def end(self) -> int:
        """Kill what is left of the process and its descendants; its exit code, -N for signal N."""
        self.signal_group(signal.SIGKILL)
        code = self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        kill_marked(self.mark)
        return code

    def last_words(self) -> str:
        """The end of what it printed."""
        try:
            with self.console.open("rb") as file:
                file.seek(max(0, self.console.stat().st_size - CONSOLE_TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.strip().splitlines()[-CONSOLE_TAIL_LINES:])


def kill_marked(mark: str) -> int:
    """Kill every process of this user that carries the mark; how many there were."""
    killed = 0
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.pid != os.getpid():
                process.kill()
                killed += 1
        except (psutil.Error, OSError):
            continue
    return killed
