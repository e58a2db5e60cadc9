"""The pure parts of the supervisor, and the pulse's ear."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from tests.engines import Engines
from tests.workers.conftest import wait_for
from webapp.lifecycle import Verdict
from workers import exit_words, pulse
from workers.escalation import Escalation, Graces
from workers.exit_words import judge_exit
from workers.identity import WorkerProcess
from workers.pulse import DEAF_AFTER_PULSES, PulseThread
from workers.slots import Devices, visible_devices
from workers.timers import Backoff, Every
from workers.trainer_process import FIRST_TO_GO, TrainerProcess

GRACES = {
    "stop": Graces(10.0, 20.0),
    "pause": Graces(10.0, 20.0),
    "shutdown": Graces(0.0, 5.0),
    "finish": Graces(3.0, 6.0),
}


@pytest.fixture
def escalation() -> Escalation:
    return Escalation(GRACES)  # type: ignore[arg-type]


def signals(escalation: Escalation, *times: float) -> list[str]:
    due = [escalation.due_signal(now) for now in times]
    return [number.name if number else "" for number in due]


def test_nothing_is_sent_without_a_wish(escalation: Escalation) -> None:
    assert signals(escalation, 0, 1e9) == ["", ""]
    assert escalation.sent is None


def test_a_stop_is_given_its_time_then_sigterm_then_sigkill(escalation: Escalation) -> None:
    escalation.ask("stop", 100)
    assert signals(escalation, 100, 109, 110, 111, 119, 120, 121) == [
        "",
        "",
        "SIGTERM",
        "",
        "",
        "SIGKILL",
        "",
    ]
    assert escalation.sent is signal.SIGKILL


def test_a_wish_that_is_repeated_does_not_begin_again(escalation: Escalation) -> None:
    escalation.ask("stop", 100)
    escalation.ask("stop", 109)
    assert signals(escalation, 110) == ["SIGTERM"]


def test_a_shutdown_overtakes_a_stop(escalation: Escalation) -> None:
    escalation.ask("stop", 100)
    escalation.ask("shutdown", 101)
    assert signals(escalation, 101, 106) == ["SIGTERM", "SIGKILL"]
    assert escalation.wish == "shutdown"


def test_a_shutdown_does_not_delay_a_stop_that_is_about_to_kill(escalation: Escalation) -> None:
    escalation.ask("stop", 100)
    escalation.ask("shutdown", 118)
    assert escalation.wish == "stop"
    assert signals(escalation, 120) == ["SIGKILL"]


@pytest.mark.parametrize("wish", ["stop", "pause", "shutdown"])
def test_a_kill_of_ours_is_no_failure(wish: str) -> None:
    verdict = judge_exit(-9, "", killed_for=wish, was_out_of_memory=True)  # type: ignore[arg-type]
    early = judge_exit(-15, "", killed_for=wish, was_out_of_memory=False)  # type: ignore[arg-type]
    assert (verdict.cause, early.cause) == ("killed_after_grace", "ended_early")
    assert early.outcome == verdict.outcome
    assert verdict.outcome == {"stop": "stopped", "pause": "paused", "shutdown": "shutdown"}[wish]


@pytest.mark.parametrize(
    ("code", "was_out_of_memory", "cause", "may_retry"),
    [
        (-9, True, "out_of_memory", False),
        (-9, False, "killed", True),
        (-11, True, "killed", True),
        (-64, False, "killed", True),
        (0, False, "vanished", True),
        (1, False, "exception", True),
    ],
)
def test_what_an_exit_code_means(
    code: int, was_out_of_memory: bool, cause: str, may_retry: bool
) -> None:
    verdict = judge_exit(code, "last", killed_for=None, was_out_of_memory=was_out_of_memory)
    assert (verdict.cause, verdict.may_retry, verdict.outcome) == (cause, may_retry, "failed")


def test_kills_for_memory_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = tmp_path / "memory.events"
    monkeypatch.setattr(exit_words, "MEMORY_EVENTS", events)
    monkeypatch.setattr(exit_words, "VMSTAT", tmp_path / "vmstat")
    assert exit_words.count_oom_kills() == 0
    (tmp_path / "vmstat").write_text("nr_free 1\noom_kill 7\n")
    assert exit_words.count_oom_kills() == 7
    events.write_text("oom 5\noom_kill 3\noom_group_kill 0\n")
    assert exit_words.count_oom_kills() == 3


def test_causes_that_no_attempt_mends_are_never_retried() -> None:
    assert not Verdict("failed", "bad_model", "", retryable=True).may_retry
    assert Verdict("failed", "disk_full", "", retryable=True).may_retry


def test_every() -> None:
    every = Every(3.0)
    assert every.is_due(0.0)
    every.done(10.0)
    assert [every.is_due(t) for t in (11.0, 12.9, 13.0)] == [False, False, True]


def test_backoff_grows_to_a_limit_and_forgets() -> None:
    backoff = Backoff()
    waits = []
    for _ in range(6):
        backoff.failed(0.0)
        waits.append(backoff.remaining(0.0))
    assert waits == [0.25, 0.5, 1.0, 2.0, 3.0, 3.0]
    assert not backoff.is_over(2.9)
    backoff.reset()
    assert backoff.is_over(0.0)


def test_each_run_gets_the_least_used_device() -> None:
    devices = Devices(("0", "1"))
    with devices.take("auto") as first, devices.take("cuda") as second:
        assert {first, second} == {"0", "1"}
        with devices.take("cpu") as third, devices.take("auto") as fourth:
            assert third == ""
            assert fourth in {"0", "1"}
        with devices.take("auto") as fifth:
            assert fifth == fourth


def test_a_worker_without_devices_gives_none() -> None:
    with Devices(()).take("auto") as device:
        assert device == ""


@pytest.mark.parametrize(
    ("value", "names"), [("", ()), ("2, 5", ("2", "5")), ("GPU-a", ("GPU-a",))]
)
def test_cuda_visible_devices_decides(
    monkeypatch: pytest.MonkeyPatch, value: str, names: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert visible_devices() == names


def test_a_trainer_sees_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "PG_PASSWORD", "Github_Token"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:p@h/d")
    monkeypatch.setenv("HF_TOKEN", "for-the-hub")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    trainer = TrainerProcess(
        ["/bin/sh", "-c", "sleep 0.2; env; cat /proc/self/oom_score_adj"],
        mark="run:1",
        console=tmp_path / "console.log",
        device="3",
        models_dir=tmp_path,
    )
    wait_for(lambda: not trainer.is_running())
    assert trainer.end() == 0
    text = (tmp_path / "console.log").read_text()
    assert "CUDA_VISIBLE_DEVICES=3" in text
    assert "TEMPER_TRAINER_OF=run:1" in text
    assert "s3cret" not in text
    assert "DATABASE_URL" not in text
    assert "HF_TOKEN=for-the-hub" in text
    assert "TOKENIZERS_PARALLELISM=false" in text
    assert text.splitlines()[-1] == FIRST_TO_GO


def test_a_deaf_worker_ends_itself(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[tuple[int, int]] = []
    monkeypatch.setattr(pulse.os, "kill", lambda pid, number: ended.append((pid, number)))
    monkeypatch.setattr(pulse.paths, "redis_url", lambda: engines.valkey.url)
    thread = PulseThread(WorkerProcess(name="train@x"), queues=("deaf",), slots=1)
    for _ in range(DEAF_AFTER_PULSES + 1):
        thread.listen()
    assert ended == []
    with redis.Redis.from_url(engines.valkey.url) as client:
        client.lpush("deaf", "a message that nobody takes")
        for _ in range(DEAF_AFTER_PULSES):
            assert ended == []
            thread.listen()
        client.delete("deaf")
    assert ended == [(os.getpid(), signal.SIGTERM)]


def test_a_worker_that_does_something_is_not_deaf(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse.os, "kill", lambda *_: pytest.fail("it ended itself"))
    monkeypatch.setattr(pulse.paths, "redis_url", lambda: engines.valkey.url)
    thread = PulseThread(WorkerProcess(name="cpu@x"), queues=("busy",), slots=1)
    with redis.Redis.from_url(engines.valkey.url) as client:
        client.lpush("busy", "one of many small messages")
        for _ in range(DEAF_AFTER_PULSES + 2):
            pulse.state.total_count["a task"] += 1
            thread.listen()
        client.delete("busy")


def test_a_worker_without_a_broker_is_not_deaf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse.paths, "redis_url", lambda: f"unix://{tmp_path}/none.sock")
    monkeypatch.setattr(pulse.os, "kill", lambda *_: pytest.fail("it ended itself"))
    thread = PulseThread(WorkerProcess(name="train@x"), queues=("train",), slots=1)
    for _ in range(DEAF_AFTER_PULSES + 2):
        thread.listen()


def test_a_worker_is_busy_with_what_it_trains() -> None:
    process = WorkerProcess(name="train@x")
    run_id = uuid4()
    with process.busy_with(run_id):
        assert process.busy_run == run_id
    assert process.busy_run is None
