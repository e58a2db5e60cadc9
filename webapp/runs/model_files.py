"""What the files of a model folder say, without loading it: type, context, weights, licence.

Called by the preflight and by `registry.base_models`. Nothing here raises for a folder that is odd:
what cannot be read is None, since a page that lists models must not fail over one of them.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from django.utils.translation import gettext as _

from training_core.contract.rundir import BESIDE_MODEL

LONGEST_HEADER_BYTES = 100_000_000
"""The limit of the safetensors format itself."""
LONGEST_TEXT_BYTES = 20_000_000
LARGEST = 2**63 - 1
"""Larger numbers in a file are nonsense, and the longest of them Python does not even write."""
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
_FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n", re.DOTALL)


class ModelFiles(NamedTuple):
    """Facts of one folder; None where the files do not say."""

    architecture: str | None
    """Class name, such as `LlamaForCausalLM`."""
    context_tokens: int | None
    """Longest sequence."""
    parameters: int | None
    """Weights stored; a tied matrix counts once."""
    stored_as: str | None
    """Type of most weights, such as `float32`."""
    size_bytes: int
    """All files of weights together."""
    licence: str
    """As the model card says; empty when it does not."""
    pickles: bool
    """Whether there are weights that only running them would read."""
    tokenizer: bool
    """Whether it has a vocabulary."""
    chat_template: bool
    """Whether its tokenizer can render a chat prompt."""
    pad_is_end: bool
    """Whether the token that fills rows is also one that ends a text."""


def read_model_files(folder: Path) -> ModelFiles:
    """Look at a folder."""
    config = read_json(folder / "config.json")
    tokenizer = read_json(folder / "tokenizer_config.json")
    found = sorted(_files(folder, "*.safetensors"))
    weights = [path for path in found if path.name not in BESIDE_MODEL]
    headers = [read_header(path) for path in weights]
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    names = config.get("architectures")
    return ModelFiles(
        architecture=str(names[0]) if isinstance(names, list) and names else None,
        context_tokens=_whole(text.get("max_position_embeddings")) if text else None,
        parameters=_parameters(headers) if weights else None,
        stored_as=_type(headers),
        size_bytes=sum(_size(path) for path in weights),
        licence=_licence(folder),
        pickles=any(_files(folder, kind) for kind in PICKLES),
        tokenizer=any((folder / name).is_file() for name in VOCABULARIES),
        chat_template=bool(tokenizer.get("chat_template"))
        or bool(_files(folder, "chat_template.jinja")),
        pad_is_end=_token(tokenizer.get("pad_token")) == _token(tokenizer.get("eos_token"))
        and bool(tokenizer.get("eos_token")),
    )


def fault_of(files: ModelFiles) -> str:
    """Why a run on such a folder would be refused, as the end of a sentence; empty when it is not.

    What the files cannot tell (an architecture, an end token) the trainer says within seconds.
    """
    if not files.size_bytes and files.pickles:
        return _(
            "keeps its weights in PyTorch pickle files alone, which cannot be read safely; convert "
            "them to safetensors"
        )
    if not files.size_bytes:
        return _("holds no weights in safetensors")
    if not files.tokenizer:
        return _("holds no tokenizer; save it there with its save_pretrained")
    if not files.chat_template:
        return _(
            "has a tokenizer without a chat template; choose the model's instruct version, or add "
            "a chat_template to its tokenizer files"
        )
    return ""


def read_json(path: Path) -> dict[str, Any]:
    """An object in a file; empty for whatever is none."""
    try:
        if path.stat().st_size > LONGEST_TEXT_BYTES:
            return {}
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def read_header(path: Path) -> dict[str, Any]:
    """The header of a safetensors file: names, types and shapes; empty for whatever is none."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= LONGEST_HEADER_BYTES:
                return {}
            content = json.loads(file.read(length))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {k: v for k, v in content.items() if k != "__metadata__" and isinstance(v, dict)}


def _parameters(headers: list[dict[str, Any]]) -> int | None:
    """Products of all shapes."""
    shapes = [entry.get("shape") for header in headers for entry in header.values()]
    if not all(isinstance(shape, list) and None not in map(_whole, shape) for shape in shapes):
        return None
    return _whole(sum(math.prod(shape) for shape in shapes if shape is not None))


def _type(headers: list[dict[str, Any]]) -> str | None:
    """The type of most tensors."""
    names = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64"}
    found = [str(entry.get("dtype")) for header in headers for entry in header.values()]
    if not found:
        return None
    most = max(sorted(set(found)), key=found.count)
    return names.get(most, most)


def _licence(folder: Path) -> str:
    """`license:` of the card's front matter."""
    try:
        with (folder / "README.md").open("rb") as file:
            text = file.read(200_000).decode(errors="replace")
        match = _FRONT_MATTER.match(text)
        # Every scalar stays text: a date or a number of the card that is none must not count here.
        facts = yaml.load(match[1], yaml.BaseLoader) if match else None
    except (OSError, yaml.YAMLError, RecursionError):
        return ""
    names = [facts.get("license_name"), facts.get("license")] if isinstance(facts, dict) else []
    return next((name[:100] for name in names if isinstance(name, str) and name not in NOTHING), "")


def _token(value: object) -> object:
    """A special token is text, or an object with the text in it."""
    return value.get("content") if isinstance(value, dict) else value


def _whole(value: object) -> int | None:
    """A number that counts something; None for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= LARGEST else None


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        return [path for path in folder.glob(pattern) if path.is_file()]
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
