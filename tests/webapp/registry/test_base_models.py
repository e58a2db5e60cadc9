"""What can be known of a model folder without loading it, and of models that are not here."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from tests.webapp.stories import launch
from training_core.contract.spec import BUILTIN_MODEL, TINY_MODEL
from training_core.models.prepare import write_progress
from training_core.models.tiny import CONTEXT_TOKENS, build_tiny_model, build_tiny_tokenizer
from webapp.accounts.models import User
from webapp.registry.base_models import base_models, describe_base
from webapp.runs.model_files import read_header, read_model_files
from webapp.runs.model_paths import problem_with_path


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved")
    build_tiny_model().save_pretrained(path)
    build_tiny_tokenizer().save_pretrained(path)
    (path / "README.md").write_text("---\nlicense: mit\n---\n# A model\n")
    return path


def test_what_is_said_of_the_tiny_model_is_true(saved: Path) -> None:
    files, told = read_model_files(saved), describe_base(TINY_MODEL)
    assert files.parameters == told.parameters
    assert files.context_tokens == told.context_tokens == CONTEXT_TOKENS
    assert told.is_here


def test_a_folder_tells_what_it_is(saved: Path) -> None:
    base = describe_base(str(saved))
    assert base.files is not None
    assert (base.files.architecture, base.files.stored_as) == ("LlamaForCausalLM", "float32")
    assert (base.licence, base.files.chat_template, base.files.pad_is_end) == ("mit", True, False)
    assert base.truths == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", "[]"),
        ("config.json", '{"architectures": "x", "max_position_embeddings": "many"}'),
        ("config.json", '{"architectures": [], "text_config": []}'),
        ("tokenizer_config.json", '{"eos_token": {"content": 5}, "pad_token": []}'),
        ("README.md", "---\nlicense: [a, b]\n---\n"),
        ("README.md", "---\n{ not yaml\n---\n"),
        ("README.md", "---\nlicense: null\ndate: 2024-13-45\n---\n"),
        ("README.md", "---\nis: !!int x\nhas: !!timestamp x\nsize: " + "9" * 5000 + "\n---\n"),
        ("model.safetensors", "short"),
        ("model.safetensors", "\xff" * 100),
    ],
)
def test_an_odd_folder_is_no_error(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / name).write_text(content)
    assert describe_base(str(tmp_path)).licence == ""


def test_a_card_with_a_date_that_is_none_keeps_its_licence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "README.md").write_text("---\ndate: 2024-13-45\nlicense: mit\n---\n")
    assert describe_base(str(tmp_path)).licence == "mit"


ODD_SHAPES: list[Any] = [
    "x",
    [None],
    [float("inf")],
    ["7", 3],
    [-5],
    [10**4000] * 2,
    {},
    [2**62] * 9,
]


@pytest.mark.parametrize("header", [[], {"a": 5}, *({"a": {"shape": s}} for s in ODD_SHAPES)])
def test_an_odd_header_is_no_error(tmp_path: Path, header: Any) -> None:
    text = json.dumps(header).encode()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    assert isinstance(read_header(tmp_path / "model.safetensors"), dict)
    assert read_model_files(tmp_path).parameters in {None, 0}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (["chat_template.jinja"], "has a tokenizer without a chat template"),
        (["tokenizer.json"], "holds no tokenizer"),
        (["model.safetensors"], "holds no weights in safetensors"),
    ],
)
def test_a_folder_that_cannot_be_trained_says_so_before_the_launch(
    saved: Path, tmp_path: Path, spoil: list[str], words: str
) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    assert problem_with_path(str(folder)) == ""
    for name in spoil:
        (folder / name).unlink()
    assert words in problem_with_path(str(folder))
    assert f"Runs on it are refused: it {words}" in " ".join(describe_base(str(folder)).truths)


def test_pickles_alone_are_refused(saved: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "pickle files alone" in problem_with_path(str(folder))


def test_a_model_of_the_hub_that_was_fetched_is_here(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert not describe_base("org/name").is_here
    home = tmp_path / "models--org--name"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("0123456789abcdef")
    shutil.copytree(saved, home / "snapshots" / "0123456789abcdef")
    base = describe_base("org/name")
    assert base.is_here
    assert "commit 0123456789ab" in base.origin
    assert base.licence == "mit"
    for ref in ("../name", "org/name/more", "org/\0"):
        assert not describe_base(ref).is_here


def test_the_moments_of_a_checkpoint_are_no_weights_of_a_model(saved: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    shutil.copyfile(folder / "model.safetensors", folder / "optimiser.safetensors")
    assert read_model_files(folder) == read_model_files(saved)


def test_the_built_in_model_is_prepared_or_says_how_far_it_is(settings: Any) -> None:
    base = describe_base(BUILTIN_MODEL)
    assert not base.is_here
    assert base.progress is not None
    assert base.parameters == 134_515_008
    assert "Q4_1" in " ".join(base.truths)


@pytest.mark.django_db
def test_the_page_follows_the_preparation(browser: Client) -> None:
    folder = Path(settings.MODELS_DIR)
    write_progress(folder, "running", 1, "Dequantising the weights")
    text = browser.get("/models/bases/").content.decode()
    assert "Dequantising the weights" in text
    assert 'hx-trigger="every 3s"' in text
    (folder / BUILTIN_MODEL).mkdir()
    (folder / BUILTIN_MODEL / "config.json").write_text("{}")
    text = browser.get("/models/bases/").content.decode()
    assert 'hx-trigger="every 3s"' not in text


def test_each_model_stands_once_and_one_that_is_away_says_so() -> None:
    refs = ["org/name", "/nowhere", TINY_MODEL, "org/name"]
    found = base_models(refs)
    assert [base.ref for base in found] == [BUILTIN_MODEL, TINY_MODEL, "org/name", "/nowhere"]
    assert [base.kind for base in found] == ["builtin", "builtin", "hub", "folder"]
    assert not found[3].is_here


@pytest.mark.django_db
def test_models_of_the_runs_that_one_sees_are_listed(
    browser: Client, ada: User, saved: Path
) -> None:
    launch(ada, model={"ref": str(saved)})
    text = browser.get("/models/").content.decode()
    assert str(saved) in text
    assert "mit" in text
