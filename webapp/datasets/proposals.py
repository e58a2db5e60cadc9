"""What a run on a dataset should look like, told by the dataset itself: proposals with reasons.

Called by `webapp.runs.origins` when a run is to be launched on a dataset version, and by the check
page. Every proposal is a value in a form, where it can be changed; the reasons stand beside it. The
answers decide how they are rewarded: numbers are compared as numbers, words as words. The number of
prompts decides how long the run is, so that a small dataset is not gone through dozens of times.
"""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from training_core.contract.domains import DatasetRecord
from training_core.contract.presets import TEACH_SMOLLM2_TO_ADD, TINY_COPY, Preset
from training_core.contract.rewards import (
    CorrectnessReward,
    FormatReward,
    MatchReward,
    RewardSpec,
    WeightedSumReward,
    WeightedTerm,
)
from training_core.contract.spec import TINY_MODEL
from webapp.datasets.models import DatasetVersion
from webapp.datasets.services import sample_answers, sample_records

LOOKED_AT = 200
"""Answers that are looked at."""
MOST_CHOICES = 12
FEWEST_A_CHOICE = 3
"""Rows that a choice has on average; with fewer the answers are words like any others."""
LONG_ANSWER_CHARS = 80
"""Answers longer than this, in the middle, are hardly ever repeated word for word."""
CHARS_A_TOKEN = 3
TAG_TOKENS = 12
"""Tokens of the answer's tags and the end of the turn."""
TAG_BYTES = len("<answer></answer>") + 1
"""The same for a model that reads bytes."""
COPIED_BYTES = 64
"""Longest prompt from which the tiny model is thought to learn to copy."""
MOST_EPOCHS = 3
"""Times that a stage goes through all training prompts at most."""

CanUse = Callable[[Sequence[str]], bool]
"""Whether the rewards of the document can use these answers."""


class Proposal(NamedTuple):
    """Changes to a launch document, and why."""

    changes: dict[str, Any]
    """Top-level keys of the document to new values."""
    system_prompt: str
    """For the dataset's domain."""
    reasons: dict[str, str]
    """What it is about (`reward`, `format`, `length`) to a sentence."""


def propose(version: DatasetVersion, document: dict[str, Any], can_use: CanUse) -> Proposal:
    """What should differ from the document for this dataset."""
    answers = sample_answers(version, LOOKED_AT)
    changes: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    prompt = str(document["domains"][0].get("system_prompt", ""))
    if can_use(answers):
        reasons["reward"] = _("Reward: correctness, since the answers are numbers.")
    else:
        words, reasons["reward"] = _word_prompt(answers)
        prompt = words if prompt else ""
        changes |= word_changes(document)
    reasons["format"] = _format_reason(is_asked_for=bool(prompt))
    tokens = _answer_tokens(answers, reads_bytes=document["model"]["ref"] == TINY_MODEL)
    stages, reasons["length"] = _stages(version, document["stages"], tokens)
    changes["stages"] = stages
    changes["evaluation"] = long_enough(changes.get("evaluation", document["evaluation"]), stages)
    return Proposal(changes, prompt, reasons)


def _format_reason(*, is_asked_for: bool) -> str:
    """Why the answer stands in tags."""
    if is_asked_for:
        return _(
            "Format: the answer in <answer></answer>, so that it is told from the words around it; "
            "0.3 of the reward is for it, and the system prompt asks for it."
        )
    return _(
        "Format: the answer in <answer></answer>, so that it is told from the words around it; 0.3 "
        "of the reward is for it."
    )


def propose_preset(version: DatasetVersion) -> tuple[Preset, str]:
    """Which preset to start from, and why: the tiny model only for what it can learn."""
    records = sample_records(version, LOOKED_AT)
    if records and all(map(_is_copying, records)):
        return TINY_COPY, _(
            "Each answer stands in its prompt: a model of a million parameters learns to copy it "
            "in a minute."
        )
    return TEACH_SMOLLM2_TO_ADD, _(
        "Not every answer can be copied from a short prompt: that takes a model that knows "
        "language, such as SmolLM2 with 135 million parameters."
    )


def word_changes(document: dict[str, Any]) -> dict[str, Any]:
    """What makes a document compare words."""
    evaluation = {**document["evaluation"], "success_reward": "match"}
    return {"reward": _tagged_reward(MatchReward()), "evaluation": evaluation}


def number_changes(document: dict[str, Any]) -> dict[str, Any]:
    """What makes a document compare numbers."""
    evaluation = {**document["evaluation"], "success_reward": "correctness"}
    return {"reward": _tagged_reward(CorrectnessReward()), "evaluation": evaluation}


def _is_copying(record: DatasetRecord) -> bool:
    """Whether the tiny model can answer: it reads bytes, and has never seen a word."""
    (first, *others) = record.messages
    text = first.content
    return not others and len(text.encode()) <= COPIED_BYTES and record.answer.strip() in text


def find_choices(answers: Sequence[str]) -> list[str]:
    """The different answers, commonest first, when they are a few that repeat; else none."""
    counts = Counter(unicodedata.normalize("NFKC", answer).strip() for answer in answers)
    repeats = len(answers) >= FEWEST_A_CHOICE * len(counts)
    if not repeats or not 2 <= len(counts) <= MOST_CHOICES:
        return []
    return [text for text, _count in counts.most_common()]


def _word_prompt(answers: Sequence[str]) -> tuple[str, str]:
    """The system prompt for answers that are words, and why they are matched."""
    if choices := find_choices(answers):
        listed = ", ".join(choices)
        why = _("Reward: match, since the answers are %(count)s choices: %(choices)s.")
        return (
            f"Answer the question. Reply with one of {listed} inside <answer></answer>, nothing "
            "else.",
            why % {"count": len(choices), "choices": _cut(listed)},
        )
    prompt = "Answer the question. Reply with the answer inside <answer></answer>, nothing else."
    middle = int(statistics.median(map(len, answers))) if answers else 0
    if middle > LONG_ANSWER_CHARS:
        return prompt, _(
            "Reward: match, but half of the answers have more than %(middle)s characters: a model "
            "hardly ever repeats so much word for word. Ask for a short answer instead."
        ) % {"middle": f"{middle:,}"}
    return prompt, _(
        "Reward: match, since the answers are words: %(middle)s characters in the middle."
    ) % {"middle": middle}


def _tagged_reward(leaf: CorrectnessReward | MatchReward) -> dict[str, Any]:
    """0.7 for the right answer, 0.3 for the format."""
    terms = (WeightedTerm(weight=0.7, node=leaf), WeightedTerm(weight=0.3, node=FormatReward()))
    spec = RewardSpec(root=WeightedSumReward(terms=terms))
    return spec.model_dump(mode="json")


def _answer_tokens(answers: Sequence[str], *, reads_bytes: bool) -> int:
    """Room for the longest answers with their tags: a power of two from 16 to 256."""
    if reads_bytes:
        wanted = max((len(answer.encode()) for answer in answers), default=0) + TAG_BYTES
    else:
        longest = max((len(answer) for answer in answers), default=0)
        wanted = math.ceil(longest / CHARS_A_TOKEN) + TAG_TOKENS
    return int(min(256, max(16, 2 ** math.ceil(math.log2(wanted)))))


def _stages(
    version: DatasetVersion, stages: list[dict[str, Any]], tokens: int
) -> tuple[list[dict[str, Any]], str]:
    """The document's stages, shorter for few prompts, with room for the answers."""
    found = []
    for stage in stages:
        per_step = stage.get("batch_size") or stage.get("prompts_per_step") or 1
        most = max(1, math.ceil(MOST_EPOCHS * version.train_count / per_step))
        changed = {**stage, "steps": min(stage["steps"], most)}
        if "sampling" in stage:
            changed["sampling"] = {**stage["sampling"], "max_new_tokens": tokens}
        found.append(changed)
    steps = " + ".join(str(stage["steps"]) for stage in found)
    return found, _(
        "Length: %(steps)s steps, which go through the %(prompts)s training prompts at most "
        "%(times)s times; completions of up to %(tokens)s tokens hold the longest answers."
    ) % {
        "steps": steps,
        "prompts": f"{version.train_count:,}",
        "times": MOST_EPOCHS,
        "tokens": tokens,
    }


def long_enough(evaluation: dict[str, Any], stages: list[dict[str, Any]]) -> dict[str, Any]:
    """An evaluation whose completions may be as long as the stages allow."""
    longest = [s["sampling"]["max_new_tokens"] for s in stages if "sampling" in s]
    return {**evaluation, "max_new_tokens": max([evaluation["max_new_tokens"], *longest])}


def _cut(text: str) -> str:
    """Short enough for a sentence."""
    return text if len(text) <= 80 else f"{text[:79]}…"
