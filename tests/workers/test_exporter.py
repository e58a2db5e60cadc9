"""An export from the wish to the folder: the worker's side, with real and with played processes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from datetime import timedelta

import psutil
import pytest
import torch
from django.utils import timezone
from transformers import AutoModelForCausalLM

from tests.training_core.models.policies import build_policy
from tests.workers.conftest import StartCelery, wait_for
from training_core.checkpoints import CheckpointStore, Retention
from training_core.curriculum.mix import MixState
from training_core.models.policy import Policy
from training_core.state import RunState
from webapp.accounts.models import User
from webapp.launcher.process_end import is_alive
from webapp.registry import services
from webapp.registry.models import ModelExport
from webapp.runs.models import Checkpoint, Run
from workers.exporter import Exporter

InBackground = Callable[[Callable[[], None]], threading.Thread]
STEP = 5


@pytest.fixture(scope="module")
def policy() -> Policy:
    return build_policy()


@pytest.fixture
def checkpoint(run: Run, policy: Policy) -> Checkpoint:
    """A whole checkpoint of the run, as its trainer writes it."""
    run.run_dir.write_owner(1, 7)
    store = CheckpointStore(run.run_dir, attempt=1, token=7)
    saved = store.save(
        policy,
        None,
        RunState(step=STEP, mix=MixState(seed=1), micro_batch_tokens=100),
        stage="rl",
        retention=Retention(keep_last=1, best_step=None),
        progress=lambda _: None,
    )
    return Checkpoint.objects.create(
        run=run,
        attempt=1,
        step=STEP,
        stage="rl",
        path=str(saved.path.relative_to(run.directory)),
        size_bytes=saved.size_bytes,
        created_at=timezone.now(),
    )


def fresh(export: ModelExport) -> ModelExport:
    return ModelExport.objects.get(pk=export.pk)


def test_a_wish_becomes_a_folder_with_the_policys_logits(
    start_celery: StartCelery, checkpoint: Checkpoint, alice: User, policy: Policy
) -> None:
    """Through the broker, a worker of the cpu queue and the real process."""
    options = ("--queues=cpu", "--pool=prefork", "--concurrency=1", "--hostname=cpu@test")
    start_celery("worker", *options, app="workers.celery_app")
    export = services.request_export(checkpoint, alice, "float32")
    wait_for(lambda: not fresh(export).is_active, "the export")
    export = fresh(export)
    assert (export.state, export.message) == ("ready", "")
    assert export.parameters == policy.facts.parameters
    assert export.check_result is not None
    assert export.check_result["largest_difference"] == 0
    model = AutoModelForCausalLM.from_pretrained(export.folder.model)
    ids = torch.tensor([[1, 4, 70, 80, 5]])
    with torch.no_grad():
        assert torch.equal(model(ids).logits, policy.model(ids).logits)
    card = (export.folder.model / "README.md").read_text()
    assert f"run #{checkpoint.run.number} after {STEP} of" in card
    assert "every logit equals the checkpoint's, bit for bit" in card


def play(scene: str, export: ModelExport) -> None:
    """Claim the export and see it through with a process that plays a scene."""
    claim = services.claim_export(export.pk)
    assert claim is not None
    Exporter(claim, [sys.executable, "-m", "tests.workers.scripted_export", scene]).run()


def queued(checkpoint: Checkpoint, owner: User) -> ModelExport:
    return ModelExport.objects.create(
        run=checkpoint.run,
        checkpoint=checkpoint,
        owner=owner,
        step=STEP,
        saved_at=checkpoint.created_at,
        dtype="float32",
    )


def test_a_process_that_ends_well(checkpoint: Checkpoint, alice: User) -> None:
    export = queued(checkpoint, alice)
    play("ready", export)
    export = fresh(export)
    assert (export.state, export.size_bytes, export.parameters) == ("ready", 3, 7)
    assert (export.folder.model / "a").read_bytes() == b"abc"


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        ("refuse", "No room."),
        ("crash", "ended with code 1 without saying why"),
        ("die_by_signal", "ended by SIGSEGV without saying why"),
    ],
)
def test_a_process_that_ends_badly(
    scene: str, words: str, checkpoint: Checkpoint, alice: User
) -> None:
    export = queued(checkpoint, alice)
    play(scene, export)
    export = fresh(export)
    assert export.state == "failed"
    assert words in export.message
    assert export.advice
    assert not export.folder.root.exists()


def test_cancelling_kills_the_process_and_what_it_started(
    checkpoint: Checkpoint, alice: User, in_background: InBackground
) -> None:
    export = queued(checkpoint, alice)
    thread = in_background(lambda: play("hang", export))
    wait_for(lambda: fresh(export).doing == "Writing the weights", "its progress")
    assert (fresh(export).done, fresh(export).total) == (2, 5)
    pids = [int(pid) for pid in (export.folder.root / "pids").read_text().split()]
    processes = [psutil.Process(pid) for pid in pids]
    assert services.cancel_export(fresh(export), alice)
    thread.join(30)
    assert not any(is_alive(process) for process in processes)
    assert fresh(export).state == "cancelled"
    assert not export.folder.root.exists()


def test_a_worker_that_was_given_up_leaves_its_heirs_directory_alone(
    checkpoint: Checkpoint, alice: User, in_background: InBackground
) -> None:
    """It hears at its next word that somebody else has the export, and goes."""
    export = queued(checkpoint, alice)
    thread = in_background(lambda: play("hang", export))
    wait_for(lambda: fresh(export).doing == "Writing the weights", "its progress")
    ModelExport.objects.update(seen_at=timezone.now() - timedelta(minutes=2))
    heir = services.claim_export(export.pk)
    while heir is None:  # it has said a word in between
        ModelExport.objects.update(seen_at=timezone.now() - timedelta(minutes=2))
        heir = services.claim_export(export.pk)
    thread.join(30)
    assert not thread.is_alive()
    assert fresh(export).state == "running"
    assert (heir.folder.source / "config.json").is_file()
