"""How times, sizes, numbers and states read to people. Pure functions, used by the template tags.

What would surprise: a value that is missing is an en dash, never an empty cell, and NaN or infinity
is named as such, since a diverged run is worth seeing.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

MISSING = "–"
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


class StateLook(NamedTuple):
    """How one state of a run is drawn: never by colour alone."""

    label: str | Promise
    """The word."""
    tone: str
    """CSS tone: ok, warn, bad, info, busy or calm."""
    icon: str
    """Name of the icon in front of the word."""
    meaning: str | Promise
    """One sentence, shown as the title."""


STATES: dict[str, StateLook] = {
    "draft": StateLook(_("draft"), "calm", "pencil", _("Not launched yet.")),
    "queued": StateLook(_("queued"), "calm", "hourglass", _("Waits for a free worker.")),
    "starting": StateLook(_("starting"), "busy", "play", _("A worker has it; the trainer loads.")),
    "running": StateLook(_("running"), "busy", "play", _("Training now.")),
    "pausing": StateLook(
        _("pausing"), "info", "pause", _("Saves a checkpoint, then frees the worker.")
    ),
    "paused": StateLook(_("paused"), "info", "pause", _("Saved; goes on when you resume it.")),
    "stopping": StateLook(_("stopping"), "info", "stop", _("Saves a checkpoint, then ends.")),
    "stopped": StateLook(
        _("stopped"), "calm", "stop", _("Ended by a person; its checkpoint is kept.")
    ),
    "succeeded": StateLook(_("succeeded"), "ok", "check", _("Ran to the end of its program.")),
    "failed": StateLook(_("failed"), "bad", "cross", _("Ended by an error.")),
    "lost": StateLook(
        _("lost"), "warn", "warning", _("Its worker is silent; it is queued again soon.")
    ),
    # imports and datasets use the same pill
    "uploaded": StateLook(_("needs columns"), "info", "pencil", _("Uploaded; choose its columns.")),
    "done": StateLook(_("done"), "ok", "check", _("Imported whole.")),
    "rejected": StateLook(_("rejected"), "bad", "cross", _("Nothing was imported.")),
    "ready": StateLook(_("ready"), "ok", "check", _("Ready to use.")),
    # exports
    "making": StateLook(_("making"), "busy", "play", _("A worker makes it now.")),
    "cancelled": StateLook(_("cancelled"), "calm", "stop", _("Somebody did not want it any more.")),
    "expired": StateLook(_("expired"), "calm", "hourglass", _("It had its time and was removed.")),
    # steps under glass
    "glass-waiting": StateLook(_("waiting"), "calm", "hourglass", _("Waits for a free slot.")),
    "glass-running": StateLook(_("running"), "busy", "play", _("A worker takes the step now.")),
    "glass-done": StateLook(_("done"), "ok", "check", _("The step was taken; its result is kept.")),
    "glass-failed": StateLook(_("failed"), "bad", "cross", _("Ended by an error.")),
    "glass-cancelled": StateLook(_("cancelled"), "calm", "stop", _("Ended by a person.")),
    # workers
    "idle": StateLook(_("idle"), "ok", "check", _("Ready for a run.")),
    "busy": StateLook(_("busy"), "busy", "play", _("Has a run or a step under glass.")),
    "silent": StateLook(_("silent"), "warn", "warning", _("Not heard of for a while.")),
    "deaf": StateLook(_("deaf"), "warn", "warning", _("Lives, but takes no work.")),
}


def state_look(state: str) -> StateLook:
    """The look of a state; an unknown one shows its own name."""
    return STATES.get(state, StateLook(state, "calm", "dot", ""))


def format_ago(moment: datetime, now: datetime) -> str:
    """`just now`, `3 min ago`, `2 h ago`, `5 d ago`, `in 3 min`."""
    seconds = (now - moment).total_seconds()
    size = abs(seconds)
    if size < 5:
        return gettext("just now")
    if size < MINUTE:
        span = gettext("{n} s").format(n=f"{size:.0f}")
    elif size < HOUR:
        span = gettext("{n} min").format(n=f"{size / MINUTE:.0f}")
    elif size < 2 * DAY:
        span = gettext("{n} h").format(n=f"{size / HOUR:.0f}")
    elif size < 60 * DAY:
        span = gettext("{n} d").format(n=f"{size / DAY:.0f}")
    elif size < 730 * DAY:
        span = gettext("{n} months").format(n=f"{size / (30.44 * DAY):.0f}")
    else:
        span = gettext("{n} years").format(n=f"{size / (365.25 * DAY):.0f}")
    return (gettext("{span} ago") if seconds >= 0 else gettext("in {span}")).format(span=span)


def format_duration(seconds: float | None) -> str:
    """`0.4 s`, `42 s`, `3 min 05 s`, `2 h 10 min`, `3 d 4 h`."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return MISSING
    if seconds < 9.95:
        return gettext("{n} s").format(n=f"{seconds:.1f}")
    whole = round(seconds)
    if whole < MINUTE:
        return gettext("{n} s").format(n=whole)
    if whole < HOUR:
        return gettext("{m} min {s} s").format(m=whole // 60, s=f"{whole % 60:02d}")
    if whole < 2 * DAY:
        return gettext("{h} h {m} min").format(h=whole // 3600, m=f"{whole % 3600 // 60:02d}")
    return gettext("{d} d {h} h").format(d=whole // 86400, h=whole % 86400 // 3600)


def format_bytes(size: float | None) -> str:
    """Decimal units, three digits: `542 MB`, `1.64 GB`."""
    if size is None or not math.isfinite(size):
        return MISSING
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" else f"{_three_digits(size)} {unit}"
        size /= 1000
    return f"{_three_digits(size)} TB"


def format_number(value: float | str | None) -> str:
    """Whole numbers with thousands marks, others with four digits; NaN and infinity by name."""
    if value is None or value == "":
        return MISSING
    number = float(value)  # metrics travel NaN and Infinity as strings
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number.is_integer() and abs(number) < 1e15:
        text = f"{int(number):,}"
    elif 1e-3 <= abs(number) < 1e6:
        text = f"{number:,.4g}" if abs(number) < 1e4 else f"{number:,.0f}"
    else:
        text = re.sub(r"e([+-])0+", r"e\1", f"{number:.3g}").replace("e+", "e")
    return text.replace("-", "−", 1) if text.startswith("-") else text


def format_score(value: float | str | None) -> str:
    """A reward or score with three decimals, so that a column of them lines up."""
    if value is None or value == "":
        return MISSING
    number = float(value)
    if not math.isfinite(number):
        return format_number(number)
    return f"{number:.3f}".replace("-", "−")


def format_percent(share: float | str | None) -> str:
    """A share as a percentage with one decimal: `42.1 %`; NaN by name."""
    if share is None or share == "":
        return MISSING
    number = float(share)
    if not math.isfinite(number):
        return format_number(number)
    return f"{number * 100:.1f} %".replace("-", "−")


def format_points(difference: float) -> str:
    """A signed difference of shares in percentage points: `+12.5 points`."""
    if not math.isfinite(difference):
        return format_number(difference)
    points = f"{difference * 100:+.1f}".replace("-", "−")
    return gettext("{n} points").format(n=points)


def _three_digits(value: float) -> str:
    """Three significant digits without an exponent."""
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
