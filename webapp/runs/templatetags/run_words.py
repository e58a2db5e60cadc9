"""Template tags of a run's pages: `{% load run_words %}`. Words for what the rows hold as names."""

from __future__ import annotations

from django import template
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from webapp.runs.told import told
from webapp.ui.templatetags.temper import pretty
from webapp.ui.wording import state_look

register = template.Library()

register.filter("told", told)

WISHES: dict[str, str | Promise] = {
    "stop": _("Stop"),
    "pause": _("Pause"),
    "shutdown": _("Shutdown"),
    "evaluate_now": _("Evaluate now"),
    "checkpoint_now": _("Checkpoint now"),
}
OUTCOMES: dict[str, str | Promise] = {"shutdown": _("shutdown")}
"""Those that are not also the name of a run's state."""
LEVELS: dict[str, str | Promise] = {
    "info": pgettext_lazy("level of a notice", "info"),
    "warning": pgettext_lazy("level of a notice", "warning"),
    "alarm": pgettext_lazy("level of a notice", "alarm"),
}
EDITS: dict[str, str | Promise] = {"archived": _("archived"), "unarchived": _("unarchived")}


@register.filter
def state_word(state: str) -> str:
    """A state as a word inside a sentence."""
    return str(state_look(state).label)


@register.filter
def outcome_word(outcome: str) -> str:
    """How an attempt ended, in a word."""
    return str(OUTCOMES.get(outcome) or state_look(outcome).label)


@register.filter
def wish_word(command: str) -> str:
    """`evaluate_now` as `Evaluate now`."""
    return str(WISHES.get(command) or pretty(command))


@register.filter
def level_word(level: str) -> str:
    """How much a notice weighs."""
    return str(LEVELS.get(level, level))


@register.filter
def edit_word(cause: str) -> str:
    """What a person changed about a run."""
    return str(EDITS.get(cause, cause))
