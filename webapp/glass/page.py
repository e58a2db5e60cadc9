"""What the page of one step under glass shows: a live view while it works, the whole story after.

Called by the views. It turns the files of a step into sentences and marks; templates lay them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy
from pydantic import ValidationError

from training_core.contract.domains import Message
from training_core.contract.glass import (
    DomainPrompt,
    GlassCompletion,
    GlassProgress,
    GlassResult,
    GlassSpec,
)
from training_core.contract.tasknames import QUEUE_TRAIN
from webapp.glass.chapters import Chapter, dead_words, goes_against, write_chapters
from webapp.glass.models import GlassStep
from webapp.glass.tokens import TokenMark, changes, largest_change, mark_tokens, ratio, signed
from webapp.ui.wording import format_number
from webapp.workers_page.services import free_slots

PHASE_WORDS: dict[str, str | Promise] = {
    "load": gettext_lazy("Loading the model"),
    "sample": gettext_lazy("Sampling completions"),
    "score": gettext_lazy("Scoring them"),
    "before": gettext_lazy("Reading every probability before the step"),
    "update": gettext_lazy("Taking the step"),
    "after": gettext_lazy("Reading every probability after it"),
}
PHASES = tuple(PHASE_WORDS)
FETCH_WORDS = gettext_lazy("Fetching the model from the hub, megabytes")
"""While the load phase counts: only a model that comes from the hub has something to count."""
CONSOLE_TAIL_BYTES = 4000


class LiveView(NamedTuple):
    """A step that is being taken."""

    words: str
    """What is being done."""
    done: int
    total: int
    place: int
    """Phase of `phases`, from 1."""
    phases: int
    messages: tuple[Message, ...]
    texts: list[str]


class CompletionView(NamedTuple):
    """One completion after the step."""

    place: int
    reward: float | None
    advantage: float | None
    scores: list[dict[str, Any]]
    tokens: list[TokenMark]
    size: int
    finish_reason: str
    change: str
    """Of the log-probability of the whole completion, in nats."""
    factor: str
    """The same as a factor of its probability."""
    direction: str
    """up, down or same."""
    is_counted: bool
    goes_against: bool


class ResultView(NamedTuple):
    """A step that is done."""

    result: GlassResult
    chapters: list[Chapter]
    dead: list[str]
    """Why the group teaches nothing; empty when it does teach."""
    completions: list[CompletionView]
    largest: float
    """Largest change of a token's log-probability, in nats."""


class GlassView(NamedTuple):
    """The page."""

    step: GlassStep
    spec: GlassSpec | None
    """None when it cannot be read any more."""
    live: LiveView | None
    result: ResultView | None
    problem: str
    """Why there is no result of a step that is done."""
    waits: str
    """Why a step waits."""
    console: str
    """The last words of a process that failed."""


def read_view(step: GlassStep) -> GlassView:
    """Everything that the page shows; a file that is gone becomes a sentence."""
    spec = find_spec(step)
    live = read_live(step, spec) if step.state == step.State.RUNNING else None
    result, problem = None, ""
    if step.state == step.State.DONE:
        result, problem = _read_result(step, spec)
    waits = why_it_waits() if step.state == step.State.WAITING else ""
    console = last_words(step) if step.state == step.State.FAILED else ""
    return GlassView(step, spec, live, result, problem, waits, console)


def find_spec(step: GlassStep) -> GlassSpec | None:
    """The spec; None when today's contract cannot read it."""
    try:
        return step.read_spec()
    except ValidationError:
        return None


def prompt_words(spec: GlassSpec | None) -> str:
    """Where the prompt comes from."""
    if spec is None:
        return gettext("a prompt")
    if isinstance(spec.prompt, DomainPrompt):
        values = {"index": format_number(spec.prompt.index), "domain": spec.prompt.domain.name}
        return gettext("prompt %(index)s of %(domain)s") % values
    return gettext("a prompt of one's own")


def read_live(step: GlassStep, spec: GlassSpec | None) -> LiveView:
    """The newest word of the process."""
    progress = step.directory.find_progress()
    size = spec.stage.group_size if spec else 0
    if progress is None:
        return LiveView(gettext("Starting the process"), 0, 0, 0, len(PHASES), (), [""] * size)
    texts = list(progress.texts) or [""] * size
    return live_view(progress, PHASES, texts)


def live_view(progress: GlassProgress, phases: Sequence[str], texts: list[str]) -> LiveView:
    """A process that works, in words."""
    is_fetched = progress.phase == "load" and progress.done < progress.total
    return LiveView(
        str(FETCH_WORDS if is_fetched else PHASE_WORDS[progress.phase]),
        progress.done,
        progress.total,
        phases.index(progress.phase) + 1,
        len(phases),
        progress.messages,
        texts,
    )


def _read_result(step: GlassStep, spec: GlassSpec | None) -> tuple[ResultView | None, str]:
    """The result, or why there is none."""
    try:
        result = step.directory.read_result()
    except (OSError, ValidationError):
        return None, gettext("The file with the result is gone or damaged. Ask again.")
    if spec is None:
        return None, gettext(
            "The settings of this step are of a form that this version does not know."
        )
    largest = largest_change(result.completions)
    completions = [_completion(one, largest) for one in result.completions]
    chapters, dead = write_chapters(spec, result), dead_words(spec, result)
    return ResultView(result, chapters, dead, completions, largest), ""


def _completion(one: GlassCompletion, largest: float) -> CompletionView:
    """One completion, ready to draw."""
    change = sum(changes(one))
    return CompletionView(
        place=one.index,
        reward=one.reward,
        advantage=one.advantage,
        scores=[score.model_dump() for score in one.scores],
        tokens=mark_tokens(one, largest),
        size=len(one.token_ids),
        finish_reason=one.finish_reason,
        change=signed(change),
        factor=ratio(change),
        direction="up" if change > 0 else "down" if change < 0 else "same",
        is_counted=one.is_counted,
        goes_against=goes_against(one),
    )


def why_it_waits() -> str:
    """In a sentence."""
    if free_slots(QUEUE_TRAIN):
        return gettext("A slot is free; it starts within seconds.")
    return gettext(
        "It waits for a slot: runs have them all, or no worker takes runs. It will hold one for "
        "seconds only."
    )


def last_words(step: GlassStep) -> str:
    """The end of what the process printed."""
    try:
        with step.directory.console_file.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - CONSOLE_TAIL_BYTES))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""
