"""Checkpoints: whole or not at all, loadable by anybody, kept by a rule, written by the owner."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.training_core.models.policies import build_policy
from tests.training_core.trainer.runs import (
    SFT,
    assert_same_run,
    final_files,
    new_run,
    of_kind,
    read_events,
    run_here,
    small_spec,
)
from training_core.checkpoints import (
    CheckpointStore,
    Resumable,
    Retention,
    load_optimiser,
    read_checkpoint,
    saved_steps,
)
from training_core.contract.events import Event
from training_core.contract.rundir import RunDir
from training_core.contract.spec import CheckpointSpec, EvaluationSpec
from training_core.contract.stages import OptimiserSpec
from training_core.curriculum.mix import MixState
from training_core.failures import OwnerLost
from training_core.models.loading import load_directory, make_policy
from training_core.models.optimiser import build_optimiser
from training_core.state import RunState

DEVICE = torch.device("cpu")


def state_at(step: int) -> RunState:
    return RunState(step=step, mix=MixState(seed=1), micro_batch_tokens=100, trained_s=1.5)


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    run_dir = new_run(tmp_path)
    run_dir.write_owner(1, 7)
    return run_dir


@pytest.fixture
def store(run_dir: RunDir) -> CheckpointStore:
    return CheckpointStore(run_dir, attempt=1, token=7)


def save(store: CheckpointStore, step: int, *, keep: int = 2, best: int | None = None) -> None:
    store.save(
        build_policy(), None, state_at(step),
        stage="rl", retention=Retention(keep, best), progress=lambda _: None,
    )  # fmt: skip


def newest(store: CheckpointStore) -> tuple[Resumable | None, list[str]]:
    damaged: list[str] = []
    return store.find_newest(lambda path, _: damaged.append(path.name)), damaged


def test_anybody_loads_it_with_the_same_logits(whole: RunDir) -> None:
    path = whole.checkpoint(12)
    model = AutoModelForCausalLM.from_pretrained(path)
    tokenizer = AutoTokenizer.from_pretrained(path)
    policy = make_policy("trained", load_directory(path), device=DEVICE)
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "2 + 3 ="}], add_generation_prompt=True, return_tensors="pt"
    )["input_ids"]
    with torch.no_grad():
        assert torch.equal(model(ids).logits, policy.model(ids).logits)
        assert not torch.equal(model(ids).logits, build_policy().model(ids).logits)
    assert model.dtype == torch.float32


def test_the_manifest_lists_every_file_with_size_and_hash(whole: RunDir) -> None:
    path = whole.checkpoint(12)
    manifest = json.loads((path / "manifest.json").read_text())
    assert (manifest["step"], manifest["stage"], manifest["attempt"]) == (12, "rl", 1)
    assert manifest["files"].keys() == {f.name for f in path.iterdir()} - {"manifest.json"}
    for name, entry in manifest["files"].items():
        content = (path / name).read_bytes()
        assert entry == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_moments_come_back_bit_for_bit(run_dir: RunDir, store: CheckpointStore) -> None:
    policy = build_policy()
    optimiser = build_optimiser(OptimiserSpec(learning_rate=1e-3), policy.parameters())
    for _ in range(3):
        for number, weight in enumerate(policy.parameters()):
            weight.grad = torch.full_like(weight, 0.1 * (number + 1))
        optimiser.step()
    store.save(
        policy, optimiser, state_at(3),
        stage="rl", retention=Retention(2, None), progress=lambda _: None,
    )  # fmt: skip
    found = read_checkpoint(run_dir.checkpoint(3))
    assert found.state == state_at(3)
    again = make_policy("again", load_directory(found.path), device=DEVICE)
    restored = build_optimiser(OptimiserSpec(learning_rate=1e-3), again.parameters())
    load_optimiser(found.path, again, restored)
    for old, new in zip(policy.parameters(), again.parameters(), strict=True):
        assert torch.equal(old, new)
        for name in ("step", "exp_avg", "exp_avg_sq"):
            assert torch.equal(optimiser.state[old][name], restored.state[new][name])
    assert float(restored.state[again.parameters()[0]]["step"]) == 3.0


def test_moments_and_their_count_lie_where_the_weights_are(whole: RunDir) -> None:
    """AdamW's fused kernel wants all of them on one device; `meta` stands for another one here."""
    path = whole.checkpoint(12)
    policy = make_policy("again", load_directory(path), device=DEVICE)
    policy.model.to("meta")
    policy.model.tie_weights()
    optimiser = build_optimiser(OptimiserSpec(), policy.parameters())
    load_optimiser(path, policy, optimiser)
    for weight in policy.parameters():
        assert {value.device.type for value in optimiser.state[weight].values()} == {"meta"}


def test_the_last_ones_and_the_best_stay(run_dir: RunDir, store: CheckpointStore) -> None:
    for step in range(1, 7):
        save(store, step, keep=2, best=2 if step >= 2 else None)
    assert saved_steps(run_dir) == [2, 5, 6]


def test_a_run_keeps_the_best_by_its_evaluations(tmp_path: Path) -> None:
    spec = small_spec(
        checkpoint=CheckpointSpec(interval_steps=1, keep_last=1, keep_best=True),
        evaluation=small_spec().evaluation.model_copy(update={"interval_steps": 2}),
    )
    run_dir = new_run(tmp_path, spec)
    run_here(run_dir)
    evaluations = [e for e in of_kind(read_events(run_dir), "evaluation") if e.step > 0]
    merits = {
        e.step: (e.results[0].pass_at_1.value, e.results[0].reward.value) for e in evaluations
    }
    best = max(merits, key=lambda step: (merits[step], -step))
    assert set(saved_steps(run_dir)) == {best, 12}
    told = {e.step for e in of_kind(read_events(run_dir), "checkpoint") if e.is_best}
    assert best == max(told)


@pytest.mark.parametrize("name", ["model.safetensors", "optimiser.safetensors", "state.json"])
def test_a_damaged_file_sends_the_run_back_to_an_older_checkpoint(
    name: str, whole: RunDir, copy_of_whole: RunDir
) -> None:
    """It says so, does the steps again, and leaves a whole one in the damaged one's place."""
    path = copy_of_whole.checkpoint(12) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    ending = run_here(copy_of_whole, 2)
    assert (ending.outcome, ending.step) == ("succeeded", 12)
    events = read_events(copy_of_whole, 2)
    (start,) = of_kind(events, "attempt_started")
    assert start.start_step == 9
    (notice,) = of_kind(events, "notice")
    assert (notice.code, notice.level) == ("checkpoint_damaged", "warning")
    assert "step-000012" in notice.message
    assert name in notice.message
    assert notice.message.endswith("step-000009 is used.")
    read_checkpoint(copy_of_whole.checkpoint(12))
    assert_same_run(copy_of_whole, whole)


def test_a_run_without_a_whole_checkpoint_begins_again_and_says_so(
    whole: RunDir, copy_of_whole: RunDir
) -> None:
    kept = sorted(copy_of_whole.checkpoints.glob("step-*"))
    for path in kept:
        os.truncate(path / "state.json", 3)
    ending = run_here(copy_of_whole, 2)
    assert (ending.outcome, ending.step) == ("succeeded", 12)
    notices = of_kind(read_events(copy_of_whole, 2), "notice")
    assert len(notices) == len(kept)
    assert all(n.message.endswith("the run begins again from step 0.") for n in notices)
    assert_same_run(copy_of_whole, whole)


@pytest.mark.parametrize("spoil", ["cut", "missing", "no manifest", "empty"])
def test_a_checkpoint_that_is_not_whole_is_none(
    spoil: str, run_dir: RunDir, store: CheckpointStore
) -> None:
    save(store, 1)
    save(store, 2)
    path = run_dir.checkpoint(2)
    if spoil == "cut":
        os.truncate(path / "model.safetensors", 1000)
    elif spoil == "missing":
        (path / "tokenizer.json").unlink()
    elif spoil == "no manifest":
        (path / "manifest.json").unlink()
    else:
        for file in path.iterdir():
            file.unlink()
    found, damaged = newest(store)
    assert found is not None
    assert found.state.step == 1
    assert damaged == ["step-000002"]
    assert not store.has(2)


def test_no_checkpoint_at_all(store: CheckpointStore) -> None:
    assert newest(store) == (None, [])


def test_the_newest_is_the_one_with_most_steps(run_dir: RunDir, store: CheckpointStore) -> None:
    """By number: beyond a million steps the names are longer."""
    for step in (999_999, 1_000_000):
        save(store, step)
    found, _ = newest(store)
    assert found is not None
    assert found.state.step == 1_000_000


def test_what_a_kill_left_behind_is_ignored_and_cleaned(run_dir: RunDir) -> None:
    left = run_dir.checkpoints / ".tmp-step-000099-123"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    store = CheckpointStore(run_dir, attempt=1, token=7)
    assert newest(store) == (None, [])
    assert list(run_dir.checkpoints.iterdir()) == []


def test_an_error_leaves_nothing_behind(
    run_dir: RunDir, store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    save(store, 1)
    monkeypatch.setattr(RunState, "model_dump_json", fail)
    with pytest.raises(RuntimeError, match="no"):
        save(store, 2)
    assert [path.name for path in run_dir.checkpoints.iterdir()] == ["step-000001"]


@pytest.mark.parametrize("owner", [(2, 8), (1, 8), (2, 7)])
def test_only_the_owner_writes(
    owner: tuple[int, int], run_dir: RunDir, store: CheckpointStore
) -> None:
    """The token is read again just before the rename: the new owner came while files were
    written."""
    save(store, 1)

    def hand_over(done: int) -> None:
        if done == 1:
            run_dir.write_owner(*owner)

    with pytest.raises(OwnerLost, match=f"Attempt {owner[0]} owns the run now"):
        store.save(
            build_policy(), None, state_at(2),
            stage="rl", retention=Retention(1, None), progress=hand_over,
        )  # fmt: skip
    assert [path.name for path in run_dir.checkpoints.iterdir()] == ["step-000001"]


def test_an_attempt_that_lost_the_run_ends_and_is_not_tried_again(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path)

    def hand_over(event: Event) -> None:
        if event.kind == "metrics" and event.step == 5:
            run_dir.write_owner(2, 500)

    ending = run_here(run_dir, 1, hand_over)
    assert (ending.outcome, ending.cause, ending.retryable) == ("failed", "owner_lost", False)
    assert saved_steps(run_dir) == [3, 4]


def test_the_phase_says_one_of_one_just_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int]] = []
    rename = CheckpointStore._put_in_place

    def look(self: CheckpointStore, aside: Path, target: Path) -> None:
        last = read_events(run_dir)[-1]
        assert last.kind == "phase"
        seen.append((last.phase, last.done))
        assert not target.exists()
        rename(self, aside, target)

    run_dir = new_run(
        tmp_path, small_spec(stages=(SFT,), evaluation=EvaluationSpec(at_start=False))
    )
    monkeypatch.setattr(CheckpointStore, "_put_in_place", look)
    run_here(run_dir)
    assert seen == [("checkpoint", 1)] * 2


def test_a_finished_run_has_nothing_more_to_do(whole: RunDir, copy_of_whole: RunDir) -> None:
    ending = run_here(copy_of_whole, 2)
    assert (ending.outcome, ending.step) == ("succeeded", 12)
    assert not of_kind(read_events(copy_of_whole, 2), "metrics")
    assert final_files(copy_of_whole) == final_files(whole)
