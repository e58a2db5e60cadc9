"""What a request for curves is, and what its answer is made of.

Filled by `read`, written out by `wire`, `export` and `report`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from webapp.metrics.axes import AxisKind

Floats = NDArray[np.float64]


class CurveQuery(NamedTuple):
    """What is asked for."""

    run_ids: tuple[UUID, ...]
    keys: tuple[str, ...]
    axis: AxisKind = "step"
    lo: float | None = None
    """Left end of the window on the axis."""
    hi: float | None = None
    budget: int = 1500
    """Points that one line may have."""
    weight: float = 0.0
    """Weight of the past in the smoothed line; 0 for none."""
    superseded: bool = False
    """Whether to return what resumed attempts replaced."""
    since: tuple[int, ...] | None = None
    """The version of each run that the caller knows."""


class Line(NamedTuple):
    """Points with their places on the axis."""

    x: Floats
    y: Floats
    step: NDArray[np.int64]
    t: NDArray[np.int64]
    """Microseconds since 1970."""


class Band(NamedTuple):
    """Lowest and highest value around places on the axis."""

    x: Floats
    lo: Floats
    hi: Floats


class Ghost(NamedTuple):
    """What one attempt logged beyond the step from which a later one went on."""

    attempt: int
    line: Line


class Curve(NamedTuple):
    """One series as it is drawn."""

    run_id: UUID
    key: str
    mode: Literal["full", "append"]
    """Whether it replaces what the caller has, or goes behind it."""
    n_total: int
    """Points in the window; for `append` the new ones."""
    exact: bool
    """Whether all of them are in `line`."""
    bad: int
    """Non-finite values among them."""
    line: Line
    smoothed: Line | None
    band: Band | None
    ghosts: tuple[Ghost, ...] = ()
    has_axis: bool = True
    """False when the run lacks the counter that the axis needs; the lines are empty then."""


class CurveSet(NamedTuple):
    """The answer."""

    curves: list[Curve]
    versions: tuple[int, ...]
    """Newest write of each run: the cursor of the next request."""
