"""Template tags of the product: `{% load temper %}`. Wording lives in `webapp.ui.wording`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from webapp.ui import wording
from webapp.ui.icons import ICONS

register = template.Library()

register.filter("duration", wording.format_duration)
register.filter("bytes", wording.format_bytes)
register.filter("number", wording.format_number)
register.filter("percent", wording.format_percent)
register.filter("points", wording.format_points)
register.filter("score", wording.format_score)


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """A moment as relative words, with the absolute time and zone in the title."""
    if moment is None:
        return wording.MISSING
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        local.strftime("%Y-%m-%d %H:%M:%S %Z"),
        wording.format_ago(moment, timezone.now()),
    )


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """An inline icon; decorative unless it has a label of its own."""
    inner = mark_safe(ICONS[name])
    if label:
        return format_html(
            '<svg class="icon" viewBox="0 0 16 16" role="img" aria-label="{}">{}</svg>',
            label,
            inner,
        )
    return format_html('<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">{}</svg>', inner)


@register.inclusion_tag("ui/state_pill.html")
def state_pill(state: str) -> dict[str, Any]:
    """The state of a run, an import or a worker: icon, word, colour, meaning as title."""
    return {"state": state, "look": wording.state_look(state)}


@register.inclusion_tag("ui/progress.html")
def progress(done: float, total: float, label: str, tone: str = "accent") -> dict[str, Any]:
    """A bar; without a total it says that it works, not how far it is."""
    share = min(max(done / total, 0.0), 1.0) if total else None
    percent = None if share is None else round(share * 100)
    return {"share": share, "percent": percent, "label": label, "tone": tone}


@register.filter
def get(mapping: Mapping[str, Any] | None, key: str) -> Any:
    """The value under a key that is only known in the template; None when it is missing."""
    return mapping.get(key) if mapping else None


@register.filter
def took(run: Any) -> str:
    """How long a finished run took, from its first claim to its end."""
    seconds = (run.finished_at - run.started_at).total_seconds()
    return gettext("took {span}").format(span=wording.format_duration(seconds))


@register.filter
def pretty(name: str) -> str:
    """`evaluate_now` as `Evaluate now`."""
    words = str(name).replace("_", " ")
    return words[:1].upper() + words[1:]


@register.inclusion_tag("ui/interval_bar.html")
def interval_bar(interval: Any) -> dict[str, Any]:
    """An estimate between 0 and 1 with its interval, drawn to scale; nothing for NaN."""
    values = [interval.low, interval.value, interval.high]
    if not all(math.isfinite(value) for value in values):
        return {"interval": interval, "is_drawn": False}
    low, value, high = (round(min(max(v, 0.0), 1.0) * 100, 2) for v in values)
    return {
        "interval": interval,
        "is_drawn": True,
        "low": low,
        "value": value,
        "width": round(max(high - low, 0.6), 2),
    }


@register.filter
def since(end: int, start: int) -> int:
    """A difference of two numbers."""
    return end - start


@register.filter
def words(text: str) -> list[str]:
    """A text's words, to loop over."""
    return text.split()
