"""Template tags of the rollouts tab: `{% load rollout_marks %}`."""

from __future__ import annotations

from typing import Any

from django import template

from webapp.rollouts.browse import RolloutQuery
from webapp.rollouts.marks import mark_special, score_bars

register = template.Library()

register.filter("special", mark_special)
register.filter("bars", score_bars)


@register.simple_tag
def at(query: RolloutQuery, **changes: Any) -> str:
    """The query string with some parts changed; an empty text means "none"."""
    none_for_empty = {
        key: None if value == "" and key in {"step", "group"} else value
        for key, value in changes.items()
    }
    return query.address(**none_for_empty)
