"""Asks the prober whether generator domains can be used. Called by `preflight`.

The prober (`training_core.domains.probe_main`) is a process of its own, started at the first
question and kept: generators take a second and a hundred megabytes to import, and a question to
them may hang. Answers are remembered, since a form asks the same thing at every change.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.field_errors import FieldError
from training_core.contract.rewards import RewardSpec
from webapp.launcher.paths import REPOSITORY

COMMAND = (sys.executable, "-m", "training_core.domains.probe_main")
ANSWER_LIMIT_S = 30.0
"""The prober's own limit and then some."""
TURN_LIMIT_S = 40.0
"""Longest wait for others who ask at the same time."""
REMEMBERED = 4096
NOT_CHECKED: tuple[FieldError, ...] = ()
"""What cannot be checked now is let through: the trainer refuses it with a sentence."""


class Prober:
    """One process and its memory of answers."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()
        self._known: OrderedDict[str, tuple[FieldError, ...]] = OrderedDict()

    def faults(
        self, domains: Sequence[ReasoningGymDomain], reward: RewardSpec
    ) -> list[tuple[FieldError, ...]]:
        """Faults of each domain, with paths inside it."""
        documents = [domain.model_dump(mode="json") for domain in domains]
        asked_of = reward.model_dump(mode="json")
        keys = [json.dumps([document, asked_of], sort_keys=True) for document in documents]
        unknown = {key: i for i, key in enumerate(keys) if key not in self._known}
        if unknown and self._turn.acquire(timeout=TURN_LIMIT_S):
            try:
                self._learn(unknown, documents, asked_of)
            finally:
                self._turn.release()
        return [self._known.get(key, NOT_CHECKED) for key in keys]

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _learn(self, unknown: dict[str, int], documents: list[Any], reward: Any) -> None:
        """Ask for what is not known and remember it."""
        answers = self._ask({"domains": [documents[i] for i in unknown.values()], "reward": reward})
        for key, answer in zip(unknown, answers or (), strict=False):
            if answer is not None:
                self._known[key] = tuple(FieldError(path, words) for path, words in answer)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _ask(self, question: dict[str, Any]) -> list[Any] | None:
        """One question; None when the prober is gone or late, which ends it."""
        try:
            process = self._running()
            assert process.stdin is not None
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(self._line(process))
        except (OSError, ValueError, EOFError):
            self.close()
            return None
        return answer if isinstance(answer, list) else None

    def _running(self) -> subprocess.Popen[bytes]:
        """The prober, started when there is none; raises OSError when it does not start."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                cwd=REPOSITORY,
                env={"PATH": os.environ.get("PATH", ""), "PYTHONHASHSEED": "0"},
            )
            self._line(self._process)
        return self._process

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        """The next line of the prober. Raises TimeoutError when it does not come."""
        assert process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([process.stdout], [], [], ANSWER_LIMIT_S)[0]:
                raise TimeoutError("the prober does not answer")
            piece = process.stdout.read(1 << 20)
            if not piece:
                raise EOFError("the prober is gone")
            line += piece
        return line


_prober = Prober()


def faults(
    domains: Sequence[ReasoningGymDomain], reward: RewardSpec
) -> list[tuple[FieldError, ...]]:
    """Faults of each generator domain, asked of this process's prober."""
    return _prober.faults(domains, reward)
