"""Figures made on the server with plotly.py, for the downloadable report only.

Used by `webapp.metrics.views.report`. The live pages build theirs in the browser from the same
curves; here each figure becomes a piece of a file that opens anywhere, without a network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from django.utils.translation import gettext
from plotly.offline import get_plotlyjs

from webapp.metrics.axes import AXES
from webapp.metrics.catalogue import describe, is_evaluation, unit_of
from webapp.metrics.curves import Curve, CurveQuery, Line

BLUE, RAW, BAND = "#0072b2", "rgba(0,114,178,0.3)", "rgba(0,114,178,0.15)"
VERMILION = "#d55e00"
HEIGHT = 320


def plotly_js() -> str:
    """The library, for one `<script>` of a file."""
    return str(get_plotlyjs())


def figure_html(curve: Curve, query: CurveQuery, intervals: list[dict[str, Any]]) -> str:
    """A `<div>` with one curve; expects the library in the page."""
    figure = make_figure(curve, query, intervals)
    html: str = figure.to_html(
        include_plotlyjs=False, full_html=False, config={"displaylogo": False, "responsive": True}
    )
    return html


def make_figure(curve: Curve, query: CurveQuery, intervals: list[dict[str, Any]]) -> go.Figure:
    """One curve: band where thinned, every point else, the smoothed line over it."""
    figure = go.Figure()
    smoothed = curve.smoothed if not is_evaluation(curve.key) else None
    if curve.band is not None:
        _add_band(figure, curve)
    else:
        mode = "lines+markers" if is_evaluation(curve.key) or len(curve.line.x) < 3 else "lines"
        _add_line(figure, curve.line, gettext("measured"), RAW if smoothed else BLUE, mode)
    if smoothed:
        name = gettext("smoothed (%(weight)s)") % {"weight": f"{query.weight:g}"}
        _add_line(figure, smoothed, name, BLUE, "lines")
    elif curve.band is not None:
        _add_line(figure, curve.line, gettext("measured"), BLUE, "lines")
    _add_intervals(figure, intervals)
    _add_nonfinite(figure, curve.line)
    unit = unit_of(describe(curve.key))
    figure.update_layout(
        template="plotly_white",
        height=HEIGHT,
        margin={"l": 60, "r": 16, "t": 8, "b": 44},
        hovermode="x unified",
        showlegend=False,
        xaxis_title={"text": gettext(AXES[query.axis].title)},
        yaxis_title={"text": escape(f"{curve.key} [{unit}]" if unit else curve.key)},
    )
    return figure


def caption(curve: Curve) -> str:
    """What is drawn, in words."""
    if curve.exact and curve.bad:
        words = gettext("all %(total)s points, %(bad)s not finite")
    elif curve.exact:
        words = gettext("all %(total)s points")
    elif curve.bad:
        words = gettext("%(drawn)s of %(total)s points, extremes exact, %(bad)s not finite")
    else:
        words = gettext("%(drawn)s of %(total)s points, extremes exact")
    total, drawn = f"{curve.n_total:,}", f"{len(curve.line.x):,}"
    return words % {"total": total, "drawn": drawn, "bad": curve.bad}


def escape(text: str) -> str:
    """Text that Plotly does not take for markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _add_line(figure: go.Figure, line: Line, name: str, colour: str, mode: str) -> None:
    finite = np.where(np.isfinite(line.y), line.y, np.nan)
    figure.add_scatter(
        x=line.x, y=finite, name=name, mode=mode, line={"color": colour, "width": 1.5}
    )


def _add_band(figure: go.Figure, curve: Curve) -> None:
    """The range of the values around each place."""
    if curve.band is None:
        return
    x, low, high = curve.band
    for y, fill in ((low, None), (high, "tonexty")):
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"width": 0},
            fill=fill,
            fillcolor=BAND,
            hoverinfo="skip",
        )


def _add_intervals(figure: go.Figure, intervals: list[dict[str, Any]]) -> None:
    """95 % intervals of evaluations as vertical bars."""
    x: list[float | None] = []
    y: list[float | None] = []
    for interval in intervals:
        x += [interval["step"], interval["step"], None]
        y += [interval["low"], interval["high"], None]
    if x:
        figure.add_scatter(
            x=x,
            y=y,
            name=gettext("95 %% interval") % {},
            mode="lines",
            line={"color": BLUE, "width": 1},
        )


def _add_nonfinite(figure: go.Figure, line: Line) -> None:
    """A cross at the lower edge for each value that is no number."""
    bad = ~np.isfinite(line.y)
    if bad.any():
        figure.add_scatter(
            x=line.x[bad],
            y=np.zeros(int(bad.sum())),
            yaxis="y2",
            name=gettext("not finite"),
            mode="markers",
            marker={"symbol": "x", "color": VERMILION, "size": 7},
            text=[str(value) for value in line.y[bad]],
            hovertemplate="%{text}",
        )
        figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False})
