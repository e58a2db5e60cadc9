"""From a row to a process and back: the real one once, and every way in which one can end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.training_core.models.families import save_family
from tests.training_core.models.hub_server import Hub, Repository
from tests.webapp.glass.steps import WORKER, ask, step_of
from tests.webapp.glass.tryouts import ask_tryout, version_of
from tests.workers.conftest import StartCelery, wait_for
from webapp import lifecycle
from webapp.accounts.models import User
from webapp.datasets import dispatch as dataset_dispatch
from webapp.glass import dispatch
from webapp.glass.models import GlassStep
from webapp.glass.services import cancel_step
from webapp.launcher.process_end import is_alive
from workers.glass_keeper import GlassKeeper, Limits, judge_glass_exit
from workers.tasks.glass_step import GLASS_COMMAND
from workers.trainer_process import MARK

HANGS = (sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)")
DIES = (sys.executable, "-c", "import sys; print('no luck'); sys.exit(3)")
LIES = (sys.executable, "-c", "")


@pytest.fixture
def step(alice: User, monkeypatch: pytest.MonkeyPatch) -> GlassStep:
    """A step that waits, of which no worker hears."""
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)
    return ask(alice)


def keeper(
    step: GlassStep,
    command: tuple[str, ...],
    shutdown: threading.Event | None = None,
    limit_s: float = 600.0,
) -> GlassKeeper:
    """A worker has claimed it."""
    claim = lifecycle.claim_glass(step.pk, WORKER)
    assert claim is not None
    event = shutdown or threading.Event()
    return GlassKeeper(claim, command, device="", shutdown=event, limits=Limits(limit_s))


def processes_of(step: GlassStep) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == f"glass:{step.pk}" and is_alive(process):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def test_the_real_process_takes_the_step(step: GlassStep) -> None:
    keeper(step, GLASS_COMMAND).run()
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("done", "done"), row.message
    result = row.directory.read_result()
    assert len(result.completions) == 4
    assert all(len(one.token_ids) <= 16 for one in result.completions)
    assert result.domain == "numbers/copy"
    assert row.summary["is_dead"] == result.is_dead
    assert "done" in row.directory.console_file.read_text()


def test_the_real_process_has_the_base_model_try(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (dispatch, dataset_dispatch):
        monkeypatch.setattr(module, "send_task", lambda *_: True)
    version = version_of(alice, [str(n) for n in range(30)], prompt="say {answer}")
    tryout = ask_tryout(alice, version)
    keeper(tryout, GLASS_COMMAND).run()
    row = step_of(tryout.pk)
    assert (row.state, row.cause) == ("done", "done"), row.message
    result = row.directory.read_tryout()
    assert (len(result.rows), len(result.tries)) == (8, 32)
    assert result.rows[0].prompt.startswith("<|bos|><|user|>say ")
    assert result.architecture == "LlamaForCausalLM"
    assert row.summary == {"pass_at_1": 0.0, "rows": 8}, "fresh weights know nothing"


def test_a_model_of_the_hub_is_fetched_by_the_process(
    step: GlassStep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.of(save_family("qwen3", tmp_path / "model"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    for name in ("HF_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    document = step.spec
    document["model"]["ref"] = "org/qwen3"
    GlassStep.objects.update(spec=document)
    with Hub({"org/qwen3": repository}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        keeper(step, GLASS_COMMAND).run()
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("done", "done"), row.message
    assert "org/qwen3/model.safetensors" in hub.fetched


def test_a_process_that_fails_says_why(step: GlassStep) -> None:
    document = step.spec
    document["model"]["ref"] = "/nowhere/at/all"
    GlassStep.objects.update(spec=document)
    keeper(step, GLASS_COMMAND).run()
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("failed", "bad_model")
    assert "/nowhere/at/all" in row.message
    assert row.advice


def test_a_checkpoint_that_is_gone_is_named(step: GlassStep, tmp_path: Path) -> None:
    document = step.spec
    document["checkpoint"] = "checkpoints/step-000004"
    GlassStep.objects.update(spec=document)
    claim = lifecycle.claim_glass(step.pk, WORKER)
    assert claim is None, "its run is not there"
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("failed", "run_deleted")


def test_a_cancelled_step_is_killed(
    step: GlassStep, in_background: Callable[..., threading.Thread]
) -> None:
    thread = in_background(keeper(step, HANGS).run)
    wait_for(lambda: processes_of(step), "the process")
    assert cancel_step(step, step.owner)
    thread.join(30)
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("cancelled", "user")
    assert processes_of(step) == []


def test_a_step_that_takes_too_long_is_ended(step: GlassStep) -> None:
    keeper(step, HANGS, limit_s=0.5).run()
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("failed", "time_limit")
    assert "0 s" in row.message or "1 s" in row.message
    assert processes_of(step) == []


@pytest.mark.parametrize("command", [DIES, LIES])
def test_a_process_that_says_nothing_is_a_failure(
    step: GlassStep, command: tuple[str, ...]
) -> None:
    keeper(step, command).run()
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("failed", "exception")
    assert "without saying why" in row.message
    assert ("no luck" in row.message) is (command is DIES)


def test_a_worker_that_shuts_down_hands_the_step_back(
    step: GlassStep, in_background: Callable[..., threading.Thread]
) -> None:
    shutdown = threading.Event()
    thread = in_background(keeper(step, HANGS, shutdown).run)
    wait_for(lambda: processes_of(step), "the process")
    shutdown.set()
    thread.join(30)
    row = step_of(step.pk)
    assert (row.state, row.attempts, row.worker) == ("waiting", 0, "")
    assert processes_of(step) == []


def test_a_worker_that_lost_the_step_kills_its_process_and_says_nothing(
    step: GlassStep, in_background: Callable[..., threading.Thread]
) -> None:
    thread = in_background(keeper(step, HANGS).run)
    wait_for(lambda: processes_of(step), "the process")
    GlassStep.objects.update(attempts=2)
    thread.join(30)
    assert step_of(step.pk).state == "running"
    assert processes_of(step) == []


def test_a_folder_that_cannot_be_written_is_told(step: GlassStep) -> None:
    step.directory.root.parent.mkdir(exist_ok=True)
    step.directory.root.write_text("in the way")
    keeper(step, HANGS).run()
    row = step_of(step.pk)
    assert (row.state, row.cause) == ("failed", "cannot_start")
    step.directory.root.unlink()


def test_a_kill_by_the_kernel_for_memory_is_told_apart() -> None:
    assert judge_glass_exit(-9, "", True).cause == "out_of_memory"
    assert judge_glass_exit(-9, "", False).cause == "killed"
    assert judge_glass_exit(-11, "words", True).message.endswith("words")


def test_a_real_worker_takes_steps_from_the_queue(start_worker: StartCelery, alice: User) -> None:
    worker = start_worker("one", app="workers.celery_app")
    first, second = ask(alice), ask(alice, kind="own", question="4 =", answer="4")
    wait_for(lambda: step_of(first.pk).state == "done", "the first step")
    wait_for(lambda: step_of(second.pk).state == "done", "the second step")
    assert step_of(second.pk).worker == "one@test"
    assert step_of(second.pk).directory.read_result().messages[-1].content == "4 ="
    worker.terminate()
    assert worker.wait(30) == 0


def test_a_worker_that_is_killed_takes_its_process_along(
    start_worker: StartCelery, alice: User
) -> None:
    worker = start_worker("one", app="workers.celery_app")
    step = ask(alice, max_new_tokens="256", group_size="32")
    wait_for(lambda: processes_of(step), "the process")
    worker.kill()
    worker.wait()
    give_up = time.monotonic() + 60
    while processes_of(step) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert processes_of(step) == []
