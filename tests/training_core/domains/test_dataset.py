from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from training_core.contract.domains import DatasetDomain, DatasetRecord, Message
from training_core.contract.rewards import CorrectnessReward, RewardSpec
from training_core.contract.rundir import RunDir
from training_core.domains.dataset import DatasetSource
from training_core.domains.sources import open_domain, validate_answers, validate_domain
from training_core.failures import BadData


def record(number: int, split: str = "train", **changes: Any) -> DatasetRecord:
    values = {
        "record_id": f"r{number}",
        "messages": (Message(role="user", content=f"question {number}"),),
        "answer": str(number),
        "split": split,
    }
    return DatasetRecord(**(values | changes))


RECORDS = [record(n) for n in range(10)] + [record(n, "held_out") for n in range(10, 16)]


def domain(**changes: Any) -> DatasetDomain:
    return DatasetDomain(**({"name": "my/data", "dataset_version": "v1"} | changes))


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    write(RunDir(tmp_path), RECORDS)
    return RunDir(tmp_path)


def write(run_dir: RunDir, records: list[DatasetRecord]) -> str:
    """Write a version as the importer does; returns its hash."""
    content = b"".join(item.model_dump_json().encode() + b"\n" for item in records)
    path = run_dir.dataset_file("v1")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def test_items_carry_the_record(run_dir: RunDir) -> None:
    source = open_domain(domain(system_prompt="Be brief."), run_dir, 0)
    item = source.prompt(0)
    number = item.answer
    assert item.prompt_id == f"r{number}"
    assert [m.role for m in item.messages] == ["system", "user"]
    assert item.question == f"question {number}"
    assert item.domain == "my/data"


def test_a_records_own_system_turn_stays_alone(tmp_path: Path) -> None:
    own = (Message(role="system", content="Own."), Message(role="user", content="q"))
    write(RunDir(tmp_path), [record(1, messages=own), *RECORDS[10:]])
    source = open_domain(domain(system_prompt="Be brief."), RunDir(tmp_path), 0)
    assert source.prompt(0).messages == own


def test_demonstrations(tmp_path: Path) -> None:
    shown = [record(1, demonstration="by hand {answer}"), *RECORDS[10:]]
    write(RunDir(tmp_path), shown)
    spec = domain(demonstration_template="{question} -> {answer}")
    source = open_domain(spec, RunDir(tmp_path), 0)
    assert source.demonstration(source.prompt(0)) == "by hand {answer}"
    held_out = source.held_out()[0]
    assert source.demonstration(held_out) == f"{held_out.question} -> {held_out.answer}"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(0, 30))
def test_each_record_once_in_each_epoch(run_dir: RunDir, seed: int, epoch: int) -> None:
    source = open_domain(domain(), run_dir, seed)
    ids = [source.prompt(epoch * 10 + place).prompt_id for place in range(10)]
    assert Counter(ids) == Counter(f"r{n}" for n in range(10))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30))
def test_prompts_depend_on_seed_and_index_alone(run_dir: RunDir, indices: list[int]) -> None:
    asked = open_domain(domain(), run_dir, 7)
    for index in indices:
        assert asked.prompt(index) == open_domain(domain(), run_dir, 7).prompt(index)


def test_epochs_and_seeds_are_shuffled_differently(run_dir: RunDir) -> None:
    def order(seed: int, epoch: int, name: str = "my/data") -> list[str]:
        source = open_domain(domain(name=name), run_dir, seed)
        return [source.prompt(epoch * 10 + place).prompt_id for place in range(10)]

    orders = [order(0, 0), order(0, 1), order(1, 0), order(0, 0, "other")]
    assert len({tuple(one) for one in orders}) == 4


def test_held_out_records_are_the_same_for_every_seed_and_never_trained_on(
    run_dir: RunDir,
) -> None:
    held_out = open_domain(domain(), run_dir, 0).held_out()
    assert held_out == open_domain(domain(), run_dir, 9).held_out()
    assert {item.prompt_id for item in held_out} == {f"r{n}" for n in range(10, 16)}
    few = open_domain(domain(held_out_items=3), run_dir, 0).held_out()
    assert few == held_out[:3]


def test_a_training_record_with_a_held_out_prompt_is_left_out(tmp_path: Path) -> None:
    twin = record(99, messages=RECORDS[10].messages, answer="other")
    write(RunDir(tmp_path), [*RECORDS, twin])
    source = open_domain(domain(), RunDir(tmp_path), 0)
    assert "r99" not in {source.prompt(index).prompt_id for index in range(22)}


def test_a_changed_file_is_refused(run_dir: RunDir) -> None:
    good = write(run_dir, RECORDS)
    assert isinstance(open_domain(domain(content_hash=good), run_dir, 0), DatasetSource)
    write(run_dir, [record(0, answer="1"), *RECORDS[1:]])
    with pytest.raises(BadData, match="hash differs"):
        open_domain(domain(content_hash=good), run_dir, 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "v1.jsonl cannot be read: No such file or directory"),
        (b"{not json}\n", "v1.jsonl, line 1: the line: Invalid JSON"),
        (b'{"record_id": "a"}\n', "v1.jsonl, line 1: messages: Field required"),
        (RECORDS[0].model_dump_json().encode() + b"\n" + b"\xff\n", "v1.jsonl, line 2"),
        (2 * (RECORDS[0].model_dump_json().encode() + b"\n"), "v1.jsonl, line 2: record twice"),
        (RECORDS[0].model_dump_json().encode()[:40], "v1.jsonl, line 1"),
        (b"", "0 training records"),
        (RECORDS[0].model_dump_json().encode() + b"\n", "0 held-out records"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = RunDir(tmp_path).dataset_file("v1")
    if content is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    with pytest.raises(BadData) as caught:
        open_domain(domain(), RunDir(tmp_path), 0)
    assert words in caught.value.message
    assert caught.value.advice


def test_a_missing_or_foreign_field_is_no_record(tmp_path: Path) -> None:
    line = RECORDS[0].model_dump_json().replace('"answer"', '"anwser"')
    path = RunDir(tmp_path).dataset_file("v1")
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    with pytest.raises(BadData, match="line 1: answer"):
        open_domain(domain(), RunDir(tmp_path), 0)


def test_there_is_nothing_to_check_without_the_database() -> None:
    assert validate_domain(domain()) == []
    assert validate_answers(domain(), RewardSpec(root=CorrectnessReward())) == []
