"""What the check page of a dataset says about a tryout: live while the base model tries, and what
its share of passes means for the run that is thought of.

Called by the views. The sentences are chosen by the numbers; every one that depends on a handful of
rows says how many, and the share stands with its interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from pydantic import ValidationError

from training_core.contract.domains import Message
from training_core.contract.events import Interval
from training_core.contract.stages import SftStage
from training_core.contract.tryout import TryoutResult, TryoutRow, TryoutSpec
from webapp.glass.models import GlassStep
from webapp.glass.page import LiveView, last_words, live_view, why_it_waits
from webapp.ui.wording import format_percent, format_score

PHASES = ("load", "sample", "score")
ALREADY = 0.9
"""Share of passes from which little is left to learn."""
KNOWS_FORM = 0.5
"""Share of tries in the right form from which a warm-up teaches little."""
CUT_OFTEN = 0.25
"""Share of cut tries that is worth a word."""


class TryView(NamedTuple):
    """One completion."""

    text: str
    reward: str
    passed: bool | None
    why: str
    """What the rewards said."""
    is_cut: bool


class RowView(NamedTuple):
    """One row with its completions, some of them still growing."""

    messages: Sequence[Message]
    answer: str
    prompt: str
    """The very text that the model read; empty before it is known."""
    prompt_tokens: int
    tries: list[TryView]
    solved: int


class Verdict(NamedTuple):
    """What it means."""

    tone: str
    """ok, info, warn or bad."""
    icon: str
    title: str
    words: list[str]


class TryoutView(NamedTuple):
    """The part of the page that is about a tryout."""

    step: GlassStep
    spec: TryoutSpec | None
    """None when it cannot be read any more."""
    live: LiveView | None
    rows: list[RowView]
    result: TryoutResult | None
    verdict: Verdict | None
    problem: str
    waits: str
    console: str


def read_tryout_view(step: GlassStep) -> TryoutView:
    """Everything about one tryout; a file that is gone becomes a sentence."""
    try:
        spec = step.read_tryout()
    except ValidationError:
        spec = None
    live, rows, result, problem = None, [], None, ""
    if step.state == step.State.RUNNING:
        live = _read_live(step)
        rows = _growing(spec, live.texts) if spec else []
    if step.state == step.State.DONE:
        result, problem = _read_result(step, spec)
        rows = [_row(row) for row in result.rows] if result else []
    return TryoutView(
        step=step,
        spec=spec,
        live=live,
        rows=rows,
        result=result,
        verdict=judge(spec, result) if spec and result else None,
        problem=problem,
        waits=why_it_waits() if step.state == step.State.WAITING else "",
        console=last_words(step) if step.state == step.State.FAILED else "",
    )


def judge(spec: TryoutSpec, result: TryoutResult) -> Verdict:
    """What the share of passes means, and what to do."""
    share, tries = result.pass_at_1, [one for one in result.tries if one.passed is not None]
    if not tries:
        return Verdict("bad", "warning", _("No try could be scored"), [_unscored(result)])
    solved = sum(bool(one.passed) for one in tries)
    counted = ngettext(
        "%(solved)s of %(tries)s tries on %(rows)s row.",
        "%(solved)s of %(tries)s tries on %(rows)s rows.",
        len(result.rows),
    )
    values = {"solved": solved, "tries": len(tries), "rows": f"{len(result.rows):,}"}
    words = [f"{counted % values} {_how_sure(share)}"]
    if solved == 0:
        tone, icon, title = "warn", "warning", _("The base model never solves it")
        words += _never(spec, result)
    elif share.value >= ALREADY:
        tone, icon = "info", "info"
        title = _("The base model solves nearly all of it already")
        words.append(
            _(
                "Little is left to learn here: harder rows would teach more. A warm-up is not "
                "needed."
            )
        )
    else:
        tone, icon = "ok", "check"
        title = _("The base model solves %(share)s of its tries") % {
            "share": format_percent(share.value)
        }
        words += _sometimes(spec, result)
    words += _cut(spec, result)
    return Verdict(tone, icon, title, words)


def _how_sure(share: Interval) -> str:
    """The interval in a sentence."""
    words = _("On all rows like these the share lies between %(low)s and %(high)s, 95 %% sure.")
    return words % {"low": format_percent(share.low), "high": format_percent(share.high)}


def _never(spec: TryoutSpec, result: TryoutResult) -> list[str]:
    """Nothing was right."""
    form = result.components.get("format")
    spread = _spread(result)
    if form == 0:
        words = [
            _(
                "It never answers in <answer></answer>: without a warm-up all rewards of a group "
                "are equal, and equal rewards teach nothing."
            ),
            _warm_up_is_needed(spec),
        ]
    else:
        in_form = _(
            "It answers in <answer></answer> in %(share)s of its tries, and is never right."
        )
        words = [
            in_form % {"share": format_percent(form)},
            _(
                "RL makes likelier what is right now and then; it cannot invent it. If the answers "
                "follow from the prompts by a rule, a warm-up may show it; otherwise take easier "
                "rows or a larger model."
            ),
        ]
        if not _warm_up_steps(spec):
            words.append(_warm_up_is_needed(spec))
    return [*words, spread] if spread else words


def _sometimes(spec: TryoutSpec, result: TryoutResult) -> list[str]:
    """Some were right: what RL needs."""
    form = result.components.get("format") or 0.0
    nowhere = _("In no row do the rewards differ yet; larger groups would find it.")
    if form < KNOWS_FORM:
        keeps = _(
            "It keeps to the form in %(share)s of its tries: the warm-up shows it the form first, "
            "then RL has more to follow."
        )
    elif _warm_up_steps(spec):
        keeps = _(
            "It keeps to the form in %(share)s of its tries: the warm-up may be short, or left out."
        )
    else:
        keeps = _(
            "It keeps to the form in %(share)s of its tries, so that leaving the warm-up out is "
            "fine."
        )
    return [_spread(result) or nowhere, keeps % {"share": format_percent(form)}]


def _spread(result: TryoutResult) -> str:
    """In how many rows a group would teach; empty for none."""
    mixed = sum(row.has_spread for row in result.rows)
    if not mixed:
        return ""
    words = ngettext(
        "In %(mixed)s of %(rows)s row the rewards of the tries differ: such groups teach from the "
        "first step.",
        "In %(mixed)s of %(rows)s rows the rewards of the tries differ: such groups teach from the "
        "first step.",
        len(result.rows),
    )
    return words % {"mixed": mixed, "rows": f"{len(result.rows):,}"}


def _warm_up_is_needed(spec: TryoutSpec) -> str:
    """With what the run has of it."""
    steps = _warm_up_steps(spec)
    if steps:
        words = ngettext(
            "The run begins with %(steps)s step of warm-up, which shows it the form.",
            "The run begins with %(steps)s steps of warm-up, which shows it the form.",
            steps,
        )
        return words % {"steps": f"{steps:,}"}
    return _("The run has no warm-up: put steps into “Warm-up”, or nothing will be learnt.")


def _warm_up_steps(spec: TryoutSpec) -> int:
    """Steps of supervised stages."""
    return sum(stage.steps for stage in spec.run.stages if isinstance(stage, SftStage))


def _cut(spec: TryoutSpec, result: TryoutResult) -> list[str]:
    """A word about tries that were too long."""
    tries = result.tries
    cut = sum(one.finish_reason == "length" for one in tries)
    if cut < CUT_OFTEN * len(tries):
        return []
    words = _(
        "%(cut)s of %(tries)s tries were cut at %(longest)s tokens. A warm-up teaches it to stop; "
        "if answers need the room, raise “Longest completion”."
    )
    longest = spec.sampling.max_new_tokens
    return [words % {"cut": cut, "tries": len(tries), "longest": longest}]


def _unscored(result: TryoutResult) -> str:
    """Why nothing was scored: what the first reward said."""
    first = next((s for one in result.tries for s in one.scores if s.status != "ok"), None)
    if first is None:
        return _("Every reward failed. Choose another reward, or mend the answers.")
    words = _(
        "Every reward failed. The reward '%(name)s' says: %(why)s. Choose another reward, or mend "
        "the answers."
    )
    return words % {"name": first.name, "why": first.explanation}


def _read_live(step: GlassStep) -> LiveView:
    """The newest word of the process."""
    progress = step.directory.find_progress()
    if progress is None:
        return LiveView(_("Starting the process"), 0, 0, 0, len(PHASES), (), [])
    return live_view(progress, PHASES, list(progress.texts))


def _growing(spec: TryoutSpec, texts: Sequence[str]) -> list[RowView]:
    """Rows whose completions grow."""
    size = spec.tries
    return [
        RowView(
            record.messages,
            record.answer,
            "",
            0,
            [
                TryView(text, "", None, "", False)
                for text in (*texts[place * size : (place + 1) * size], *[""] * size)[:size]
            ],
            0,
        )
        for place, record in enumerate(spec.records)
    ]


def _read_result(step: GlassStep, spec: TryoutSpec | None) -> tuple[TryoutResult | None, str]:
    """The result, or why there is none."""
    try:
        result = step.directory.read_tryout()
    except (OSError, ValidationError):
        return None, _("The file with the result is gone or damaged. Ask again.")
    if spec is None:
        return None, _("The settings of this tryout are of a form that this version does not know.")
    return result, ""


def _row(row: TryoutRow) -> RowView:
    """One row that has been tried."""
    tries = [
        TryView(
            one.text,
            format_score(one.reward),
            one.passed,
            "; ".join(_said(score.model_dump()) for score in one.scores),
            one.finish_reason == "length",
        )
        for one in row.tries
    ]
    solved = sum(bool(one.passed) for one in row.tries)
    return RowView(row.messages, row.answer, row.prompt, row.prompt_tokens, tries, solved)


def _said(score: dict[str, Any]) -> str:
    """A reward's name, its score and its reason."""
    value = score["value"]
    told = score["status"] if value is None or not math.isfinite(value) else format_score(value)
    return f"{score['name']} {told}: {score['explanation']}"
