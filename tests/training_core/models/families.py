"""One tiny model of each family that people train most, with what is special about each.

Random weights, the byte tokenizer with its chat template, and two end tokens. Windows are short, so
that a prompt of a dozen tokens is already longer; soft caps are low, so that they are felt.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    LlamaConfig,
    Qwen2Config,
    Qwen3Config,
)

from training_core.models.loading import LoadedModel, make_policy
from training_core.models.policy import Policy
from training_core.models.tiny import build_tiny_tokenizer

WINDOW_TOKENS = 12
ENDS = (2, 3)
"""The tokenizer's end, and one that only the model's own files name."""
SIZES: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.15,
}
CONFIGS: dict[str, Callable[..., Any]] = {
    "llama": lambda **sizes: LlamaConfig(tie_word_embeddings=False, **sizes),
    "qwen2": lambda **sizes: Qwen2Config(
        tie_word_embeddings=True,
        use_sliding_window=True,
        sliding_window=WINDOW_TOKENS,
        max_window_layers=1,
        **sizes,
    ),
    "qwen3": lambda **sizes: Qwen3Config(head_dim=16, tie_word_embeddings=True, **sizes),
    "gemma2": lambda **sizes: Gemma2Config(
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=WINDOW_TOKENS,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
        **sizes,
    ),
    "gemma3": lambda **sizes: Gemma3TextConfig(
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=WINDOW_TOKENS,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        **sizes,
    ),
}
FAMILIES = tuple(CONFIGS)


def build_family(family: str) -> LoadedModel:
    """A model of the family and its tokenizer; the same weights each time."""
    tokenizer = build_tiny_tokenizer()
    config = CONFIGS[family](
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=list(ENDS),
        **SIZES,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(config)
    return LoadedModel(model.float(), tokenizer)


def build_family_policy(family: str) -> Policy:
    """The same as a policy on the processor."""
    return make_policy(family, build_family(family), device=torch.device("cpu"))


def save_family(family: str, path: Path) -> Path:
    """The same as a directory that somebody has saved."""
    loaded = build_family(family)
    loaded.model.save_pretrained(path)
    loaded.tokenizer.save_pretrained(path)
    return path
