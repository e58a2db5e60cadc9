from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_core.contract.control import ControlCommand
from training_core.contract.presets import TEACH_SMOLLM2_TO_ADD
from training_core.contract.rundir import RunDir, whole_lines, write_atomic


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "run")


def command(number: int) -> ControlCommand:
    return ControlCommand(id=str(number), attempt=1, t=0.5, command="stop", actor="ada")


def test_lines_come_with_the_offset_behind_them(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a":1}\n\xc3\xa9\n\n')
    assert list(whole_lines(path)) == [(8, b'{"a":1}'), (11, b"\xc3\xa9"), (12, b"")]


def test_a_torn_last_line_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"one\ntwo\nthr")
    assert [line for _, line in whole_lines(path)] == [b"one", b"two"]
    [(offset, _), *_] = list(whole_lines(path))[-1:]
    with path.open("ab") as file:
        file.write(b"ee\nfour")
    assert list(whole_lines(path, offset)) == [(14, b"three")]
    assert list(whole_lines(path, 14)) == []


def test_a_missing_or_empty_file_has_no_lines(tmp_path: Path) -> None:
    assert list(whole_lines(tmp_path / "nothing")) == []
    (tmp_path / "empty").touch()
    assert list(whole_lines(tmp_path / "empty")) == []


@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.data())
def test_reading_on_from_any_offset_misses_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    """Cut the file anywhere, read, complete it, read on: every line once."""
    path = tmp_path_factory.mktemp("cut") / "f"
    content = b"".join(line + b"\n" for line in lines)
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    first = list(whole_lines(path))
    path.write_bytes(content)
    offset = first[-1][0] if first else 0
    second = list(whole_lines(path, offset))
    assert [line for _, line in first + second] == lines


def test_an_atomic_write_replaces_whole_and_leaves_nothing_aside(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    write_atomic(path, b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert [item.name for item in path.parent.iterdir()] == ["file.json"]


def test_a_failed_write_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.json"
    write_atomic(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("training_core.contract.rundir.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"


def test_the_spec_is_written_once(run_dir: RunDir) -> None:
    spec = TEACH_SMOLLM2_TO_ADD.spec
    run_dir.write_spec(spec)
    run_dir.write_spec(spec.model_copy(update={"seed": 99}))
    assert run_dir.read_spec() == spec


def test_the_owner_is_the_last_one_named(run_dir: RunDir) -> None:
    run_dir.write_owner(1, 10)
    run_dir.write_owner(2, 11)
    assert run_dir.read_owner() == (2, 11)


def test_commands_are_read_in_order_and_a_torn_one_is_left(run_dir: RunDir) -> None:
    assert run_dir.read_control() == []
    run_dir.root.mkdir()
    run_dir.append_control(command(1))
    run_dir.append_control(command(2))
    with run_dir.control_file.open("ab") as file:
        file.write(json.dumps({"id": "3"}).encode())
    assert run_dir.read_control() == [command(1), command(2)]


def test_paths_sort_as_their_numbers_do(run_dir: RunDir) -> None:
    assert run_dir.checkpoint(12).name == "step-000012"
    assert run_dir.rollout_file(3, "train", 7).name == "a3-train-000007.jsonl"
    assert run_dir.attempts() == []
    for number in (10, 2, 1):
        run_dir.attempt(number).mkdir(parents=True)
    (run_dir.root / "attempts" / "junk").mkdir()
    assert run_dir.attempts() == [1, 2, 10]
