"""The prober: checks generator domains where they can be killed. `python -m ...domains.probe_main`.

Started and asked by `webapp.runs.probe`, one JSON line a question and one an answer. A generator is
foreign code: settings that are legal can keep it busy for hours or fill the memory. Each question
is therefore worked on in a forked child with limits on memory, processor and time. The prober
itself only imports the generators, once, so that a child starts at once; it ends with its stdin.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any, BinaryIO

from pydantic import TypeAdapter

from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.rewards import RewardSpec
from training_core.domains.sources import validate_answers, validate_domain

DOMAIN_LIMIT_S = 3.0
"""Longest time for one domain."""
SPEC_LIMIT_S = 10.0
"""Longest time for all domains of a question; those that are left go unchecked."""
MEMORY_BYTES = 1 << 30
"""What a child may take on top of what it is born with."""
DOMAINS: TypeAdapter[list[ReasoningGymDomain]] = TypeAdapter(list[ReasoningGymDomain])
Faults = list[list[str]] | None
"""(field, message) pairs of one domain; None when it was not checked."""


def main() -> None:
    """Answer questions until there are no more."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl+C ends the web server, and with it our stdin
    print("ready", flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        domains = DOMAINS.validate_python(question["domains"])
        print(json.dumps(examine(domains, RewardSpec(**question["reward"]))), flush=True)


def examine(domains: list[ReasoningGymDomain], reward: RewardSpec) -> list[Faults]:
    """Faults of each domain. A domain that kills its child is told so, and the rest go on."""
    found: list[Faults] = []
    give_up = time.monotonic() + SPEC_LIMIT_S
    while len(found) < len(domains) and time.monotonic() < give_up:
        rest = domains[len(found) :]
        answers = _in_child(rest, reward, give_up)
        found += answers
        if len(answers) < len(rest) and time.monotonic() < give_up:
            found.append([["params", _too_much(rest[len(answers)])]])
    return found + [None] * (len(domains) - len(found))


def _too_much(domain: ReasoningGymDomain) -> str:
    return (
        f"With these settings {domain.generator!r} takes more than {DOMAIN_LIMIT_S:.0f} s or more"
        " memory than a question may need; choose smaller numbers."
    )


def _in_child(
    domains: list[ReasoningGymDomain], reward: RewardSpec, give_up: float
) -> list[Faults]:
    """Answers of a forked child, as many as it gives before it dies or is killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _work(domains, reward, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb", buffering=0) as answers:
            return _listen(answers, len(domains), give_up)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _work(domains: list[ReasoningGymDomain], reward: RewardSpec, writing: int) -> None:
    """The child: one line a domain, then the end."""
    try:
        _limit()
        for domain in domains:
            faults = validate_domain(domain) or validate_answers(domain, reward)
            pairs = [[fault.path, fault.message] for fault in faults]
            os.write(writing, json.dumps(pairs).encode() + b"\n")
    finally:
        os._exit(0)


def _limit() -> None:
    """Bounds that hold inside C code too, where no signal handler runs."""
    with open("/proc/self/statm") as file:
        born_with = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (born_with + MEMORY_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(SPEC_LIMIT_S) + 1,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _listen(answers: BinaryIO, wanted: int, give_up: float) -> list[Faults]:
    """Whole lines that come in time."""
    found: list[Any] = []
    rest = b""
    until = min(give_up, time.monotonic() + DOMAIN_LIMIT_S)
    while len(found) < wanted:
        if not select.select([answers], [], [], max(0.0, until - time.monotonic()))[0]:
            break
        piece = answers.read(65_536)
        if not piece:
            break
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            found += [json.loads(line) for line in lines]
            until = min(give_up, time.monotonic() + DOMAIN_LIMIT_S)
    return found


if __name__ == "__main__":
    main()
