"""A model that cannot be trained fails at once, with a sentence and an advice."""

from __future__ import annotations

import json
import pickle
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training_core.models.policies import CPU
from training_core.failures import BadModel
from training_core.models.loading import LoadedModel, is_path, load_policy, make_policy
from training_core.models.tiny import build_tiny_model, build_tiny_tokenizer

NOWHERE = Path("/nonexistent")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model as a directory that somebody has saved."""
    path = tmp_path_factory.mktemp("saved")
    build_tiny_model().save_pretrained(path)
    build_tiny_tokenizer().save_pretrained(path)
    return path


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


def refusal(ref: Path | str) -> BadModel:
    with pytest.raises(BadModel) as caught:
        load_policy(str(ref), models_dir=NOWHERE)
    assert caught.value.advice
    assert not caught.value.retryable
    return caught.value


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_saved_directory_loads_with_the_same_logits(saved: Path) -> None:
    policy = load_policy(str(saved), models_dir=NOWHERE)
    ids = torch.tensor([[1, 4, 70, 80, 5]])
    with torch.no_grad():
        expected = build_tiny_model()(ids).logits
        assert torch.equal(policy.model(ids).logits, expected)
    assert {weight.dtype for weight in policy.parameters()} == {torch.float32}
    assert policy.facts.context_tokens == 2048
    assert policy.facts.eos_ids == (2,)
    assert policy.facts.plain_head
    assert policy.facts.shared_prompts
    assert policy.facts.parameters == sum(weight.numel() for weight in policy.parameters())


def test_missing_directory(tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in refusal(tmp_path / "gone").message


def test_directory_without_config(tmp_path: Path) -> None:
    assert "config.json" in refusal(tmp_path).message


def test_no_chat_template(copy: Path) -> None:
    (copy / "chat_template.jinja").unlink()
    failure = refusal(copy)
    assert "no chat template" in failure.message
    assert "instruct" in failure.advice


def test_a_template_that_cannot_render(copy: Path) -> None:
    (copy / "chat_template.jinja").write_text("{{ raise_exception('nobody may speak') }}")
    assert "nobody may speak" in refusal(copy).message


def test_no_end_of_sequence() -> None:
    model, tokenizer = build_tiny_model(), build_tiny_tokenizer()
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    tokenizer.eos_token = None
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    with pytest.raises(BadModel, match="no end-of-sequence token") as caught:
        make_policy("endless", LoadedModel(model, tokenizer), device=CPU)
    assert "eos_token" in caught.value.advice


def cut_weights(path: Path) -> None:
    weights = path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100_000])


def empty_weights(path: Path) -> None:
    (path / "model.safetensors").write_bytes(b"")


def remove_weights(path: Path) -> None:
    (path / "model.safetensors").unlink()


def remove_tokenizer(path: Path) -> None:
    for file in path.glob("tokenizer*"):
        file.unlink()


def break_config(path: Path) -> None:
    (path / "config.json").write_text("{nope")


def put_text_for_a_number(path: Path) -> None:
    edit_json(path / "config.json", hidden_size="many")


def shrink_config(path: Path) -> None:
    edit_json(path / "config.json", hidden_size=64)


def name_an_unknown_kind(path: Path) -> None:
    edit_json(path / "config.json", model_type="no-such-kind", architectures=["NoSuchKind"])


def name_an_encoder_decoder(path: Path) -> None:
    edit_json(path / "config.json", model_type="t5", architectures=["T5Model"])


@pytest.mark.parametrize(
    "spoil",
    [
        cut_weights, empty_weights, remove_weights, remove_tokenizer, break_config,
        put_text_for_a_number, shrink_config, name_an_unknown_kind, name_an_encoder_decoder,
    ],
)  # fmt: skip
def test_spoilt_directories(copy: Path, spoil: Callable[[Path], None]) -> None:
    spoil(copy)
    assert str(copy) in refusal(copy).message


def test_code_of_a_model_is_neither_run_nor_asked_about(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trainer's stdin is its supervisor's pipe: a question there would never be answered."""
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question="": asked.append(question) or "n")
    ran = copy / "ran"
    (copy / "custom.py").write_text(f"open({str(ran)!r}, 'w')\nclass Custom: pass\n")
    code = {"AutoConfig": "custom.Custom", "AutoModelForCausalLM": "custom.Custom"}
    edit_json(copy / "config.json", model_type="custom", auto_map=code)
    assert "code" in refusal(copy).message
    assert asked == []
    assert not ran.exists()


class _Dropper:
    """What a hostile pickle looks like: a call that runs while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("kind", ["hostile", "cut", "empty", "bare"])
def test_a_pickle_is_neither_run_nor_is_unsafe_advice_given(copy: Path, kind: str) -> None:
    (copy / "model.safetensors").unlink()
    weights, ran = copy / "pytorch_model.bin", copy / "ran"
    if kind == "bare":
        weights.write_bytes(pickle.dumps({"weight": _Dropper(ran)}))
    elif kind != "empty":
        torch.save({"weight": _Dropper(ran)}, weights)
    if kind == "cut":
        weights.write_bytes(weights.read_bytes()[:100])
    if kind == "empty":
        weights.write_bytes(b"")
    failure = refusal(copy)
    assert not ran.exists()
    if kind in {"hostile", "bare"}:
        assert failure.advice == "Convert the weights to safetensors."
    for word in ("weights_only", "upgrade", "from_tf", "torch.load"):
        assert word not in str(failure).lower() + failure.advice


@pytest.mark.parametrize("ref", ["~nosuchuser/x", "/" + "x" * 400, "x/" * 200, "/a\0b", "x" * 400])
def test_impossible_paths(ref: str) -> None:
    refusal(ref)


def test_a_directory_that_is_no_model_and_one_that_is_not_there_read_alike(tmp_path: Path) -> None:
    gone, empty = tmp_path / "gone", tmp_path
    assert str(refusal(gone)).replace(str(gone), "") == str(refusal(empty)).replace(str(empty), "")


@pytest.mark.parametrize("ref", ["not a reference", "org/name/", "org//name"])
def test_what_is_no_reference_at_all(ref: str) -> None:
    refusal(ref)


def test_hub_id_without_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Says so quickly, instead of trying each file again and again; no file waits in the cache."""
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)

    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    failure = refusal("no-such-organisation/no-such-model")
    assert "no-such-organisation/no-such-model" in failure.message
    assert "network" in failure.advice
    assert sum(naps) <= 5


@pytest.mark.parametrize(
    ("ref", "expected"),
    [("/models/a", True), ("./a", True), ("~/a", True), ("a/b/c", True), ("org/name", False)],
)
def test_paths_and_hub_ids(ref: str, expected: bool) -> None:
    assert is_path(ref) is expected
