"""Preset cards: each preset with how long it takes on this installation.

Called by the launch, runs and home pages. Minutes are the median of runs here that the person may
see, are the preset as it stands and ran to their end in one attempt, on the device of the newest of
them; without such a run the figure is the preset's own, and the card says that it was measured
elsewhere.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from training_core.contract.presets import PRESETS, Preset
from webapp.accounts.models import User
from webapp.runs.models import Attempt, Run
from webapp.runs.status import RunState

LOOKED_AT = 60
COUNTED = 9
BESIDE = frozenset({"name", "seed"})
"""Parts of a spec that do not change how long it takes."""


class Timing(NamedTuple):
    """How long a preset takes."""

    minutes: float
    runs: int
    """Finished runs here that it is measured from; 0 when it was measured elsewhere."""
    device: str
    """Device of those runs; empty when it was measured elsewhere."""

    @property
    def words(self) -> str:
        """`about 8 min here`, `under 1 min here` or `about 8 min on two processor cores`."""
        if self.runs and self.minutes < 1:
            return _("under 1 min here")
        words = (
            _("about %(n)s min here") if self.runs else _("about %(n)s min on two processor cores")
        )
        return words % {"n": _round(self.minutes)}

    @property
    def source(self) -> str:
        """Where the figure comes from."""
        if not self.runs:
            return _(
                "Measured on two processor cores of another machine; you see no run of it here yet."
            )
        words = ngettext(
            "Measured here on %(device)s, run of this preset.",
            "Measured here on %(device)s, median of %(count)s runs of this preset.",
            self.runs,
        )
        return words % {"device": self.device, "count": self.runs}


class PresetCard(NamedTuple):
    """One card."""

    preset: Preset
    timing: Timing


def preset_cards(user: User) -> list[PresetCard]:
    """All cards in their order, as this person sees them."""
    measured = _measured_minutes(user)
    return [PresetCard(preset, _timing(preset, measured[preset.slug])) for preset in PRESETS]


def timing_of(user: User, preset: Preset) -> Timing:
    """How long one preset takes."""
    return _timing(preset, _measured_minutes(user)[preset.slug])


def _timing(preset: Preset, measured: Iterable[tuple[str, float]]) -> Timing:
    """The median on the newest device, else the preset's own figure."""
    found = list(measured)
    if not found:
        return Timing(preset.minutes, 0, "")
    device = found[0][0]
    minutes = [value for where, value in found if where == device][:COUNTED]
    return Timing(statistics.median(minutes), len(minutes), device)


def _measured_minutes(user: User) -> dict[str, list[tuple[str, float]]]:
    """Preset to (device, minutes) of its finished runs, the newest first."""
    documents = {p.slug: _comparable(p.spec.model_dump(mode="json")) for p in PRESETS}
    attempts = (
        Attempt.objects.filter(
            number=1,
            run__in=Run.objects.visible_to(user),
            run__attempt=1,
            run__state=RunState.SUCCEEDED,
            run__preset__in=list(documents),
            run__parent_checkpoint=None,
            ended_at__isnull=False,
        )
        .select_related("run")
        .order_by("-run__number")[:LOOKED_AT]
    )
    found: dict[str, list[tuple[str, float]]] = {slug: [] for slug in documents}
    for attempt in attempts:
        run = attempt.run
        if attempt.ended_at is not None and _comparable(run.spec) == documents[run.preset]:
            seconds = (attempt.ended_at - attempt.started_at).total_seconds()
            found[run.preset].append((attempt.device or _("this machine"), seconds / 60))
    return found


def _comparable(document: dict[str, object]) -> dict[str, object]:
    """The parts of a spec that decide how long it takes."""
    return {key: value for key, value in document.items() if key not in BESIDE}


def _round(minutes: float) -> str:
    """Whole minutes; a decimal below three."""
    return f"{minutes:.1f}".removesuffix(".0") if minutes < 3 else f"{minutes:.0f}"
