"""A tryout samples and scores as training does, and counts what passes over rows."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from training_core.contract.domains import DatasetDomain, DatasetRecord, Message
from training_core.contract.glass import REQUEST, GlassDir, GlassSpec
from training_core.contract.presets import TINY_COPY
from training_core.contract.rundir import RunDir
from training_core.contract.spec import RunSpec
from training_core.contract.tryout import TryoutRow, TryoutSpec, TryoutTry
from training_core.domains.dataset import make_item
from training_core.failures import BadData
from training_core.launch import open_policy
from training_core.models.policy import Policy
from training_core.monitors.glass_progress import GlassReporter
from training_core.rollouts.collect import PromptRequest, collect_groups, score_groups
from training_core.rollouts.engine import GenerationSettings
from training_core.rollouts.seeds import stream_seed
from training_core.tryout import pass_share, try_base
from workers.glass_main import run_step

DOMAIN = DatasetDomain(
    name="mine",
    dataset_version="some-version",
    system_prompt="Copy.",
    demonstration_template="<answer>{answer}</answer>",
)
RECORDS = tuple(
    DatasetRecord(
        record_id=f"record-{n}",
        messages=(Message(role="user", content=f"{n} is?"),),
        answer=str(n),
    )
    for n in range(3)
)


def make_spec(**changes: object) -> TryoutSpec:
    run = RunSpec.model_validate(
        {**TINY_COPY.spec.model_dump(), "domains": [DOMAIN.model_dump()], "seed": 5, **changes}
    )
    return TryoutSpec(run=run, records=RECORDS, tries=4)


def one(passed: bool | None) -> TryoutTry:
    return TryoutTry(text="x", tokens=1, finish_reason="eos", scores=(), reward=1.0, passed=passed)


def row(*passed: bool | None) -> TryoutRow:
    return TryoutRow(
        record_id="x",
        messages=RECORDS[0].messages,
        prompt="x",
        prompt_tokens=1,
        answer="x",
        tries=tuple(map(one, passed)),
    )


def test_tries_are_what_the_engine_of_training_samples(tmp_path: Path) -> None:
    spec = make_spec()
    policy, plan = open_policy("tiny", spec.resources, tmp_path, None)
    reporter = GlassReporter(GlassDir(tmp_path))
    result = try_base(policy, plan, spec, reporter)
    requests = [
        PromptRequest(
            "g",
            make_item(DOMAIN, record),
            tuple(stream_seed(5, "tryout", record.record_id, i) for i in range(4)),
        )
        for record in RECORDS
    ]
    settings = GenerationSettings(24, 1.0, 12)
    groups = score_groups(
        spec.run.reward,
        collect_groups(policy, requests, settings, lambda *_: None),
        lambda _: None,
    )
    assert [[t.text for t in row.tries] for row in result.rows] == [
        [rollout.text for rollout in group.rollouts] for group in groups
    ]
    assert [[t.reward for t in row.tries] for row in result.rows] == [
        [rollout.reward for rollout in group.rollouts] for group in groups
    ]
    assert [row.answer for row in result.rows] == ["0", "1", "2"]
    assert result.rows[0].prompt == "<|bos|><|system|>Copy.<|user|>0 is?<|assistant|>"
    assert result.rows[0].prompt_tokens == groups[0].prompt_ids.__len__()
    assert len({t.text for t in result.tries}) > 6, "each try has a stream of its own"
    assert set(result.components) == {"correctness", "format"}
    assert set(result.seconds) >= {"sample", "score"}


def test_the_progress_holds_row_after_row(tmp_path: Path) -> None:
    directory = GlassDir(tmp_path)
    reporter = GlassReporter(directory)
    reporter.expect(2, 3, lambda ids: "".join(map(str, ids)))
    reporter.grow([(0, 0), (1, 0), (1, 2)], [1, 2, 3])
    reporter.begin("score")
    progress = directory.find_progress()
    assert progress is not None
    assert progress.texts == ("1", "", "", "2", "", "3")


def test_the_share_is_over_rows_and_leaves_unscored_tries_out() -> None:
    share = pass_share([row(True, False), row(True, None), row(False, False), row(None, None)])
    assert share.n == 3
    assert share.value == pytest.approx(0.5)
    assert 0 < share.low < 0.5 < share.high < 1
    nothing = pass_share([row(None)])
    assert math.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


def test_a_row_teaches_when_its_rewards_differ() -> None:
    same = row(True, True)
    assert not same.has_spread
    other = same.tries[0].model_copy(update={"reward": 0.3})
    assert same.model_copy(update={"tries": (same.tries[0], other)}).has_spread
    lost = same.tries[0].model_copy(update={"reward": None})
    assert not same.model_copy(update={"tries": (same.tries[0], lost)}).has_spread


def test_the_process_does_what_the_document_asks_for(tmp_path: Path) -> None:
    directory = GlassDir(tmp_path / "a")
    directory.begin(make_spec())
    end = run_step(directory, RunDir(tmp_path))
    assert (end.outcome, end.cause) == ("done", "done"), end
    assert len(directory.read_tryout().tries) == 12


def test_a_prompt_without_room_is_told(tmp_path: Path) -> None:
    spec = make_spec()
    long = RECORDS[0].model_copy(
        update={"messages": (Message(role="user", content="x" * 3000),), "record_id": "long"}
    )
    directory = GlassDir(tmp_path / "a")
    directory.begin(spec.model_copy(update={"records": (long,)}))
    end = run_step(directory, RunDir(tmp_path))
    assert (end.outcome, end.cause) == ("failed", BadData.cause)
    assert "3,0" in end.message


def test_a_tryout_needs_a_dataset() -> None:
    with pytest.raises(ValueError, match="a tryout needs a dataset"):
        TryoutSpec(run=TINY_COPY.spec, records=RECORDS)


def test_a_request_without_a_kind_is_a_step() -> None:
    tryout = REQUEST.validate_json(make_spec().model_dump_json())
    assert isinstance(tryout, TryoutSpec)
    with pytest.raises(ValueError, match="step"):
        REQUEST.validate_python({"spec_version": 9})
    assert GlassSpec.model_fields["kind"].default == "step"


def test_the_policy_is_not_moved(tmp_path: Path) -> None:
    spec = make_spec()
    policy, plan = open_policy("tiny", spec.resources, tmp_path, None)
    before = weights(policy)
    try_base(policy, plan, spec, GlassReporter(GlassDir(tmp_path)))
    assert weights(policy) == before


def weights(policy: Policy) -> list[float]:
    return [float(weight.detach().double().sum()) for weight in policy.parameters()]
