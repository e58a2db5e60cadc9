"""From a model reference to a policy: built-in models, hub ids and local paths alike.

Called by `workers.trainer_main` before anything else, so that a model that cannot be trained fails
within seconds and says what to do.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import get_session
from huggingface_hub.constants import ENDPOINT
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from transformers import AutoModelForCausalLM, AutoTokenizer

from training_core.contract.domains import Message
from training_core.contract.spec import BUILTIN_MODEL, TINY_MODEL
from training_core.failures import BadData, BadModel
from training_core.models.chat import prompt_ids
from training_core.models.eos import find_eos_ids, find_turn_end_id
from training_core.models.policy import ModelFacts, Policy
from training_core.models.prepare import prepare_builtin
from training_core.models.probe import can_share_prompts, find_window_tokens, has_plain_head
from training_core.models.tiny import build_tiny_model, build_tiny_tokenizer

HUB_PATIENCE_S = 5


@dataclass(frozen=True)
class LoadedModel:
    """What a reference points to, in float32 on the processor."""

    model: Any
    tokenizer: Any


def load_policy(ref: str, *, models_dir: Path, device: torch.device | None = None) -> Policy:
    """Load, check and probe a model. Raises BadModel."""
    loaded = load_model(ref, models_dir=models_dir)
    return make_policy(ref, loaded, device=device or torch.device("cpu"))


def load_model(ref: str, *, models_dir: Path) -> LoadedModel:
    """Resolve a reference: `tiny`, the prepared built-in model, a path, or a hub id."""
    if ref == TINY_MODEL:
        return LoadedModel(build_tiny_model(), build_tiny_tokenizer())
    if ref == BUILTIN_MODEL:
        return load_directory(prepare_builtin(models_dir))
    if is_path(ref):
        return load_directory(Path(ref))
    return _from_pretrained(ref, local=False)


def is_path(ref: str) -> bool:
    """Whether a reference means a directory rather than a hub id."""
    return ref.startswith(("/", ".", "~")) or ref.count("/") > 1 or _holds_config(Path(ref))


def load_directory(path: Path) -> LoadedModel:
    """Load from a local directory, never touching the network.

    One sentence for whatever keeps it away: the reader may not know this machine's disk.
    """
    if not _holds_config(path):
        raise BadModel(
            f"{path} holds no config.json that can be read, so it is no model directory.",
            "Point to a directory written by save_pretrained, with config, weights and tokenizer; "
            "it must be on the worker that trains.",
        )
    return _from_pretrained(str(path.expanduser()), local=True)


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


def _from_pretrained(ref: str, *, local: bool) -> LoadedModel:
    """Load config, weights and tokenizer; turn each known refusal into a BadModel."""
    local = local or not _is_hub_in_reach()
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            ref, local_files_only=local, trust_remote_code=False
        )
        model = AutoModelForCausalLM.from_pretrained(
            ref, dtype=torch.float32, local_files_only=local, trust_remote_code=False
        )
    except MemoryError:
        raise
    except Exception as error:  # safetensors and hub have error classes of their own
        raise _explain(ref, error) from error
    return LoadedModel(model, tokenizer)


def _is_hub_in_reach() -> bool:
    """Ask once; without network the hub's client would try each file for half a minute."""
    try:
        get_session().head(ENDPOINT, timeout=HUB_PATIENCE_S)
    except Exception:  # whatever keeps the answer away, files on this machine may still do
        return False
    return True


def _explain(ref: str, error: Exception) -> BadModel:
    """The reason behind an error of from_pretrained, searched through its chain of causes."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    for kind, message, advice in _REASONS:
        if any(isinstance(item, kind) for item in chain):
            return BadModel(message.format(ref=ref), advice)
    if any(_is_about_a_pickle(item) for item in chain):
        return BadModel(
            f"{ref} keeps its weights in a PyTorch pickle file that cannot be loaded safely.",
            "Convert the weights to safetensors.",
        )
    first_line = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
    return BadModel(
        f"{ref} could not be loaded: {first_line}",
        "Check that it is a causal language model in transformers' format, with its tokenizer.",
    )


def _is_about_a_pickle(error: BaseException) -> bool:
    """Whether torch or transformers refused a pickle; what they advise then is not safe."""
    text = str(error).lower()
    words = ("weights_only", "weights only", "torch.load", "pickle", "pytorch checkpoint")
    return isinstance(error, pickle.UnpicklingError) or any(word in text for word in words)


_REASONS: tuple[tuple[type[BaseException], str, str], ...] = (
    (
        GatedRepoError,
        "{ref} is gated: its owner grants access person by person.",
        "Ask for access on the model's page, set HF_TOKEN for the worker, or choose another model.",
    ),
    (
        RepositoryNotFoundError,
        "There is no model {ref} on the hub, or it is private.",
        "Check the spelling; for a private model set HF_TOKEN for the worker.",
    ),
    (
        HFValidationError,
        "{ref} is neither a built-in model, nor a directory, nor a hub id.",
        "Use smollm2-135m-instruct, tiny, a hub id such as org/name, or a path.",
    ),
    (
        LocalEntryNotFoundError,
        "{ref} is not on this machine and the hub cannot be reached.",
        "Connect the worker to the network once, or give the path of a downloaded model.",
    ),
    (
        ConnectionError,
        "The hub cannot be reached to fetch {ref}.",
        "Connect the worker to the network once, or give the path of a downloaded model.",
    ),
)
