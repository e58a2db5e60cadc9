"""Does an exported folder compute what its checkpoint computes? Asked by loading both.

Called by `exports.folder`. Both are opened with nothing but transformers' own defaults, as the
folder's user will, one after the other, and read the same short prompt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import psutil
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from training_core.contract.domains import Message
from training_core.contract.exports import CHECKED_HEADING, SUMS, ExportCheck, ExportDtype
from training_core.exports.meter import Meter
from training_core.failures import BadCheckpoint
from training_core.models.chat import prompt_ids

PROBE = (Message(role="user", content="What is 17 + 25? Think, then answer in one line."),)
MEMORY_FACTOR = 1.4
"""Memory that loading takes, in sizes of the float32 weights."""


class Reading(NamedTuple):
    """What a folder makes of the probe."""

    ids: tuple[int, ...]
    """Its tokens."""
    logits_TV: torch.Tensor
    """Logits after each of them, in float32."""


def compare_folders(
    source: Path, target: Path, dtype: ExportDtype, size: int, meter: Meter
) -> ExportCheck | None:
    """Compare a folder in `dtype` with its float32 checkpoint of `size` bytes of weights.

    None when the machine has too little memory to load one of them. Raises BadCheckpoint when the
    folder is not what the checkpoint is.
    """
    if psutil.virtual_memory().available < MEMORY_FACTOR * size:
        meter.add(2 * size)
        return None
    meter.say("Loading the checkpoint")
    expected = read_probe(source)
    meter.add(size)
    meter.say("Loading the folder as its user will")
    found = read_probe(target)
    meter.add(size)
    return judge(expected, found, dtype)


def judge(expected: Reading, found: Reading, dtype: ExportDtype) -> ExportCheck:
    """The two readings side by side. Raises BadCheckpoint."""
    if found.ids != expected.ids:
        raise BadCheckpoint(
            "The exported tokenizer reads a prompt as other tokens than the checkpoint's, so the "
            "folder is not given out.",
            "This is a fault of the software; restart from the checkpoint instead.",
        )
    difference = float((found.logits_TV - expected.logits_TV).abs().max())
    if dtype == "float32" and difference != 0:
        raise BadCheckpoint(
            "The exported folder does not compute what the checkpoint computes (largest "
            f"difference of a logit: {difference:.3g}), so it is not given out.",
            "This is a fault of the software; restart from the checkpoint instead.",
        )
    same_T = found.logits_TV.argmax(-1) == expected.logits_TV.argmax(-1)
    return ExportCheck(
        tokens=len(found.ids), largest_difference=difference, same_choice=int(same_T.sum())
    )


@torch.inference_mode()
def read_probe(path: Path) -> Reading:
    """Open a folder and read the probe. Raises BadCheckpoint where weights and config differ."""
    tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    opened: Any = AutoModelForCausalLM.from_pretrained(
        path, local_files_only=True, output_loading_info=True
    )
    model, report = opened
    lacking = sorted({*report["missing_keys"], *(str(key) for key in report["mismatched_keys"])})
    unknown = sorted(report["unexpected_keys"])
    if lacking or unknown:
        kind = "lack" if lacking else "hold more than"
        raise BadCheckpoint(
            f"The weights {kind} what the config asks for: {', '.join(lacking or unknown)[:300]}.",
            "Export another checkpoint of the run.",
        )
    ids = prompt_ids(tokenizer, PROBE)
    logits_TV = model.eval()(input_ids=torch.tensor([ids])).logits[0].float()
    return Reading(ids, logits_TV)


def checked_words(check: ExportCheck | None, dtype: ExportDtype) -> str:
    """The card's last section: what is known of this very folder."""
    loaded = "Loaded with `AutoModelForCausalLM.from_pretrained`: over a prompt of"
    if check is None:
        words = "The weights were not loaded again: the machine had too little memory for that."
    elif dtype == "float32":
        words = f"{loaded} {check.tokens} tokens, every logit equals the checkpoint's, bit for bit."
    else:
        words = (
            f"The weights are rounded to {dtype}. {loaded} {check.tokens} tokens, logits differ "
            f"from the float32 checkpoint's by {check.largest_difference:.3g} at most, and the "
            f"likeliest next token is the same at {check.same_choice} of {check.tokens} positions."
        )
    return f"\n{CHECKED_HEADING}\n\n{words}\n\n`sha256sum -c {SUMS}` checks the files.\n"
