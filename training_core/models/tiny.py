"""The tiny model: about a million parameters and a byte-level tokenizer, made offline in a moment.

Built by `models.loading` for the reference `tiny`; tests and the one-minute preset train it. It is
a real Llama with a real chat template, so that nothing in the core has a special case for it. Its
weights depend on the seed alone.
"""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers import models as token_models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, BOS, EOS = "<|pad|>", "<|bos|>", "<|eos|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
CHAT_TEMPLATE = (
    "<|bos|>{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}<|eos|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONTEXT_TOKENS = 2048
INITIALISER_STD = 0.08
"""About 1 / sqrt(width). The usual 0.02 suits wide models; here it would cost hundreds of steps."""


def build_tiny_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each byte, after the special tokens; pad, BOS and EOS are three tokens."""
    specials = [PAD, BOS, EOS, *ROLES]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*specials, *alphabet])}
    tokenizer = Tokenizer(token_models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(specials)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        extra_special_tokens=list(ROLES),
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT_TOKENS,
        clean_up_tokenization_spaces=False,
    )


def build_tiny_model(*, seed: int = 0) -> LlamaForCausalLM:
    """A fresh model in float32; the same seed gives the same weights on every machine."""
    tokenizer = build_tiny_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT_TOKENS,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        initializer_range=INITIALISER_STD,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)
