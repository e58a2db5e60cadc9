"""A checkpoint as a plain model folder: whole, checked, and the same model as the policy."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from training_core.checkpoints import MANIFEST
from training_core.contract.exports import (
    CHECKED_HEADING,
    SUMS,
    ExportDir,
    ExportDtype,
    ExportOrder,
    ExportProgress,
    ExportResult,
)
from training_core.exports import check
from training_core.exports.folder import export_checkpoint
from training_core.failures import BadCheckpoint
from training_core.models.policy import Policy

CARD = "# A model\n"
IDS = (1, 4, 70, 80, 5, 90, 200, 33)
FRESH = """
import json, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, ids = sys.argv[1], json.loads(sys.argv[2])
torch.set_num_threads(1)
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
turns = [{"role": "user", "content": "What is 17 + 25?"}]
prompt = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
with torch.no_grad():
    logits = model(input_ids=torch.tensor([ids])).logits[0]
torch.save({"logits": logits, "prompt": prompt, "dtype": str(model.dtype)}, sys.argv[3])
"""


def export(folder: ExportDir, dtype: ExportDtype = "float32", **documents: str) -> ExportResult:
    folder.write_order(ExportOrder(dtype=dtype, documents={"README.md": CARD, **documents}))
    return export_checkpoint(folder, folder.write_progress)


def open_elsewhere(folder: ExportDir, tmp_path: Path) -> dict[str, Any]:
    """What a fresh process with nothing of ours makes of the folder."""
    subprocess.run(
        [sys.executable, "-c", FRESH, folder.model, json.dumps(IDS), tmp_path / "found.pt"],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""},
        check=True,
    )
    found: dict[str, Any] = torch.load(tmp_path / "found.pt", weights_only=True)
    return found


def policy_logits(policy: Policy) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = policy.model(input_ids=torch.tensor([IDS])).logits[0]
    return logits


def test_a_fresh_process_computes_the_policys_logits(
    folder: ExportDir, trained: Policy, tmp_path: Path
) -> None:
    result = export(folder)
    found = open_elsewhere(folder, tmp_path)
    assert found["dtype"] == "torch.float32"
    assert torch.equal(found["logits"], policy_logits(trained))
    turns = [{"role": "user", "content": "What is 17 + 25?"}]
    expected = trained.tokenizer.apply_chat_template(
        turns, add_generation_prompt=True, return_dict=False
    )
    assert list(found["prompt"]) == list(expected)
    assert result.outcome == "ready"
    assert result.parameters == trained.facts.parameters
    assert result.check is not None
    assert result.check.largest_difference == 0
    assert result.check.same_choice == result.check.tokens > 10


def test_half_the_size_is_half_the_size_and_says_how_far_it_is_off(
    folder: ExportDir, trained: Policy, tmp_path: Path
) -> None:
    full = (folder.source / "model.safetensors").stat().st_size
    result = export(folder, "bfloat16")
    found = open_elsewhere(folder, tmp_path)
    assert found["dtype"] == "torch.bfloat16"
    distance = (found["logits"].float() - policy_logits(trained)).abs().max()
    assert 0 < distance < 0.3
    assert result.check is not None
    assert 0 < result.check.largest_difference < 0.3
    assert (folder.model / "model.safetensors").stat().st_size < 0.51 * full
    card = (folder.model / "README.md").read_text()
    assert "rounded to bfloat16" in card
    assert f"by {result.check.largest_difference:.3g} at most" in card


def test_the_folder_holds_what_belongs_to_a_model_and_nothing_else(folder: ExportDir) -> None:
    result = export(folder, **{"lineage.json": "{}", "training_spec.yaml": "name: x\n"})
    names = {path.name for path in folder.model.iterdir()}
    assert names == {
        "README.md",
        "SHA256SUMS",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "lineage.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "training_spec.yaml",
    }
    assert [file.name for file in result.files] == sorted(names)
    for file in result.files:
        content = (folder.model / file.name).read_bytes()
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    listed = dict(reversed(line.split("  ")) for line in read(folder, SUMS).splitlines())
    assert listed == {file.name: file.sha256 for file in result.files if file.name != SUMS}
    assert read(folder, "README.md").startswith(CARD)
    assert CHECKED_HEADING in read(folder, "README.md")


def read(folder: ExportDir, name: str) -> str:
    return (folder.model / name).read_text()


def test_generation_stops_where_the_policy_stopped(folder: ExportDir, trained: Policy) -> None:
    """The end of turn of the chat template, though the files of the model name another token."""
    config = folder.source / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"eos_token_id": 3}))
    reseal(folder, "config.json")
    export(folder)
    model = AutoModelForCausalLM.from_pretrained(folder.model)
    assert model.generation_config.eos_token_id == [2, 3]
    assert model.generation_config.pad_token_id == 0
    tokenizer = AutoTokenizer.from_pretrained(folder.model)
    assert tokenizer.chat_template == trained.tokenizer.chat_template


def reseal(folder: ExportDir, *names: str) -> None:
    """Make the manifest true of files that a test has changed or added."""
    path = folder.source / MANIFEST
    manifest = json.loads(path.read_text())
    for name in names:
        content = (folder.source / name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        manifest["files"][name] = {"size": len(content), "sha256": digest}
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_in_several_files(folder: ExportDir, trained: Policy, dtype: ExportDtype) -> None:
    for path in folder.source.glob("*.safetensors"):
        path.unlink()
    trained.model.save_pretrained(folder.source, max_shard_size="1MB")
    manifest = json.loads((folder.source / MANIFEST).read_text())
    manifest["files"].pop("model.safetensors")
    (folder.source / MANIFEST).write_text(json.dumps(manifest))
    reseal(folder, *(path.name for path in folder.source.glob("model*")))
    result = export(folder, dtype)
    shards = sorted(folder.model.glob("*.safetensors"))
    assert len(shards) > 1
    index = json.loads(read(folder, "model.safetensors.index.json"))
    assert index["metadata"]["total_size"] == sum(shard.stat().st_size for shard in shards)
    assert result.parameters == trained.facts.parameters


def test_progress_rises_to_its_end(folder: ExportDir) -> None:
    heard: list[ExportProgress] = []
    folder.write_order(ExportOrder(dtype="float32"))
    export_checkpoint(folder, heard.append)
    assert [word.done for word in heard] == sorted(word.done for word in heard)
    assert heard[0].done == 0
    assert {word.total for word in heard} == {heard[-1].total}
    messages = list(dict.fromkeys(word.message for word in heard))
    assert messages == [
        "Checking the checkpoint's hashes",
        "Writing the weights",
        "Loading the checkpoint",
        "Loading the folder as its user will",
        "Hashing the files",
    ]


def refusal(folder: ExportDir) -> BadCheckpoint:
    with pytest.raises(BadCheckpoint) as caught:
        export(folder)
    assert caught.value.advice
    assert not folder.model.exists()
    assert not list(folder.root.glob(".tmp-model*"))
    return caught.value


def test_a_damaged_checkpoint_is_named(folder: ExportDir) -> None:
    weights = folder.source / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    message = refusal(folder).message
    assert "step 5 is damaged" in message
    assert "model.safetensors" in message


def test_a_file_that_is_missing_is_named(folder: ExportDir) -> None:
    (folder.source / "tokenizer.json").unlink()
    assert "tokenizer.json" in refusal(folder).message


@pytest.mark.parametrize("content", [None, "", "[]", "{}"])
def test_no_manifest(folder: ExportDir, content: str | None) -> None:
    (folder.source / MANIFEST).unlink()
    if content is not None:
        (folder.source / MANIFEST).write_text(content)
    assert "nobody knows whether it is whole" in refusal(folder).message


def test_weights_that_are_no_safetensors(folder: ExportDir) -> None:
    (folder.source / "model.safetensors").write_bytes(b"{}")
    reseal(folder, "model.safetensors")
    assert "model.safetensors of the checkpoint cannot be read" in refusal(folder).message


@pytest.mark.parametrize(("change", "words"), [("lack", "lack"), ("more", "hold more than")])
def test_weights_that_do_not_fit_the_config(folder: ExportDir, change: str, words: str) -> None:
    """What from_pretrained would fill with random numbers, or drop, in silence."""
    weights = load_file(folder.source / "model.safetensors")
    if change == "lack":
        del weights["model.layers.1.mlp.up_proj.weight"]
    else:
        weights["model.layers.9.mlp.up_proj.weight"] = torch.zeros(2, 2)
    save_file(weights, folder.source / "model.safetensors", metadata={"format": "pt"})
    reseal(folder, "model.safetensors")
    assert words in refusal(folder).message


def test_a_folder_that_computes_something_else_is_not_given_out(
    folder: ExportDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter((0.0, 1e-6))
    real = check.read_probe

    def read_probe(path: Path) -> check.Reading:
        ids, logits_TV = real(path)
        return check.Reading(ids, logits_TV + next(readings))

    monkeypatch.setattr(check, "read_probe", read_probe)
    assert "does not compute what the checkpoint computes" in refusal(folder).message


def test_too_little_memory_is_said_and_no_reason_to_fail(
    folder: ExportDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "MEMORY_FACTOR", 1e12)
    assert export(folder).check is None
    assert "too little memory" in read(folder, "README.md")


def test_what_a_killed_process_left_is_no_hindrance(folder: ExportDir) -> None:
    left = folder.root / ".tmp-model"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    (left / "rest.bin").write_bytes(b"half")
    assert export(folder).outcome == "ready"
    assert not (folder.model / "rest.bin").exists()


def test_what_is_handed_out_is_not_the_checkpoints_own_file(folder: ExportDir) -> None:
    """Except for weights in their own type, which nobody changes: those cost no disk."""
    before = {path.name: path.stat().st_ino for path in folder.source.iterdir()}
    export(folder)
    after = {path.name: path.stat().st_ino for path in folder.model.iterdir()}
    same = {name for name in before.keys() & after.keys() if before[name] == after[name]}
    assert same == {"model.safetensors"}
    assert not folder.source.exists()
