/* Curves to Plotly traces. Pure: the same curves and choices always give the same figure.
   What is drawn: the smoothed line over the raw one; of a thinned curve its range of values in
   place of the raw line; NaN as a gap and a cross at the lower edge; on a log axis what is not over
   zero as a mark at that edge, never at a made-up height. */

import { t } from "../ui/texts.js";
import { toClock } from "./clock.js";
import { layoutOf } from "./layout.js";
import { breakLine, placeOfStep, windowOf } from "./series.js";
import { escapeMarkup, place, value } from "./text.js";

const FEW = 40;
const EDGE = { yaxis: "y2", mode: "markers", type: "scatter", showlegend: false };

/** { data, layout, belowZero } for one panel.
    entries: [{ curve, name, colour }]; options: { metric, axis, range, isLog, theme, marks,
    intervals, revision }. */
export function figureOf(entries, options) {
  const data = [];
  let belowZero = 0;
  for (const entry of entries) {
    const shown = shownPart(entry.curve, options);
    belowZero += shown.belowZero.length;
    data.push(...ghostTraces(entry, options));
    data.push(...curveTraces(entry, shown, options, entries.length > 1));
    data.push(...edgeTraces(shown, options));
  }
  data.push(...checkpointTrace(entries, options));
  const layout = layoutOf(entries, data, options);
  if (options.axis === "wall") {
    showLocalClock(data, layout);
  }
  return { data, layout, belowZero };
}

/** Move all places so that the axis reads as the clock on the wall. */
function showLocalClock(data, layout) {
  for (const trace of data) {
    trace.x = Array.from(trace.x, (x) => toClock(x, "wall"));
  }
  for (const shape of layout.shapes) {
    shape.x0 = shape.x1 = toClock(shape.x0, "wall");
  }
  for (const note of layout.annotations) {
    note.x = toClock(note.x, "wall");
  }
  if (layout.xaxis.range) {
    layout.xaxis.range = layout.xaxis.range.map((x) => toClock(x, "wall"));
  }
}

/** The visible part of a curve, with what cannot be drawn as a height set aside. */
function shownPart(curve, { range, isLog, axis, marks }) {
  const whole = axis === "wall" ? breakLine(curve.line, marks) : curve.line;
  const raw = windowOf(whole, range);
  const bad = [];
  const belowZero = [];
  const y = Float64Array.from(raw.y, (v, i) => {
    if (!Number.isFinite(v)) {
      if (!Number.isNaN(raw.step[i])) {
        bad.push(i);
      }
      return NaN;
    }
    if (isLog && v <= 0) {
      belowZero.push(i);
      return NaN;
    }
    return v;
  });
  return { raw, y, bad, belowZero };
}

function curveTraces(entry, shown, options, isOneOfMany) {
  const { curve, colour } = entry;
  const { metric, range, isLog, axis, marks } = options;
  const whole = axis === "wall" ? breakLine(curve.smooth, marks) : curve.smooth;
  const smooth = metric.evaluation ? null : windowOf(whole, range);
  const traces = [];
  const isBanded = Boolean(curve.band && smooth);
  if (isBanded) {
    traces.push(...bandTraces(curve.band, colour, options));
  } else {
    traces.push(rawTrace(entry, shown, options, Boolean(smooth)));
  }
  if (smooth) {
    const y = isLog ? smooth.y.map((v) => (v > 0 ? v : NaN)) : smooth.y;
    traces.push({
      ...lineTrace(smooth.x, y, colour, 2),
      name: isOneOfMany ? escapeMarkup(entry.name) : t("smoothed"),
      showlegend: isOneOfMany,
      hovertemplate: template(metric.unit),
    });
  }
  return traces;
}

function rawTrace(entry, shown, options, isUnderSmoothed) {
  const { curve, colour } = entry;
  const { metric } = options;
  const few = curve.line.x.length <= (isUnderSmoothed ? 2 : FEW);
  const trace = {
    ...lineTrace(shown.raw.x, shown.y, colour, metric.evaluation ? 1.5 : curve.exact ? 1.5 : 1),
    mode: metric.evaluation || few ? "lines+markers" : "lines",
    marker: { color: colour, size: metric.evaluation ? 7 : 4 },
    name: isUnderSmoothed ? t("measured") : escapeMarkup(entry.name),
    opacity: isUnderSmoothed ? 0.3 : 1,
    showlegend: !isUnderSmoothed,
    hovertemplate: template(metric.unit),
  };
  if (metric.evaluation && options.intervals?.length) {
    trace.error_y = errorBars(shown.raw, options.intervals, colour);
  }
  return trace;
}

function lineTrace(x, y, colour, width) {
  return {
    type: "scatter",
    mode: "lines",
    x,
    y,
    connectgaps: false,
    line: { color: colour, width },
  };
}

function template(unit) {
  const format = unit === "bytes" ? "%{y:.4~s}B" : "%{y:.4~g}";
  return `${format}<extra>%{fullData.name}</extra>`;
}

/** 95 % intervals of the evaluations at the steps of a line. */
function errorBars(line, intervals, colour) {
  const known = new Map(intervals.map((interval) => [interval.step, interval]));
  const array = [];
  const arrayminus = [];
  line.y.forEach((y, i) => {
    const interval = known.get(line.step[i]);
    array.push(interval ? Math.max(0, interval.high - y) : 0);
    arrayminus.push(interval ? Math.max(0, y - interval.low) : 0);
  });
  return {
    type: "data",
    symmetric: false,
    array,
    arrayminus,
    color: colour,
    thickness: 1.2,
    width: 4,
  };
}

function bandTraces(band, colour, { range, isLog }) {
  const lo = windowOf({ x: band.x, y: band.lo, step: band.x }, range);
  const hi = windowOf({ x: band.x, y: band.hi, step: band.x }, range);
  const drawable = (y) => (isLog ? y.map((v) => (v > 0 ? v : NaN)) : y);
  const outline = { width: 1, color: withAlpha(colour, 0.45) }; // shows a spike of one step
  const edge = { type: "scatter", mode: "lines", line: outline, hoverinfo: "skip" };
  return [
    { ...edge, x: lo.x, y: drawable(lo.y), showlegend: false },
    {
      ...edge,
      x: hi.x,
      y: drawable(hi.y),
      fill: "tonexty",
      fillcolor: withAlpha(colour, 0.22),
      name: t("range"),
      showlegend: false,
    },
  ];
}

function ghostTraces({ curve }, { range, isLog, theme }) {
  return curve.ghosts.map((ghost) => {
    const line = windowOf(ghost.line, range);
    return {
      ...lineTrace(
        line.x,
        line.y.map((v) => (isLog && v <= 0 ? NaN : v)),
        theme.muted,
        1.2,
      ),
      line: { color: theme.muted, width: 1.2, dash: "dot" },
      name: t("attempt {number}, superseded", { number: ghost.attempt }),
      showlegend: false,
      hovertemplate: "%{y:.4~g}<extra>%{fullData.name}</extra>",
    };
  });
}

/** Marks at the lower edge for values without a height. */
function edgeTraces({ raw, bad, belowZero }, { axis, metric, theme }) {
  const trace = (places, symbol, colour, word) => ({
    ...EDGE,
    x: places.map((i) => raw.x[i]),
    y: places.map(() => 0.02),
    marker: { symbol, color: colour, size: 7, line: { width: 1.4, color: colour } },
    text: places.map((i) => word(value(raw.y[i], metric.unit), place(raw.x[i], axis))),
    hovertemplate: "%{text}<extra></extra>",
    cliponaxis: false,
  });
  const traces = [];
  if (bad.length) {
    const word = (y, where) => t("{value} at {place}", { value: y, place: where });
    traces.push(trace(bad, "x-thin", theme.bad, word));
  }
  if (belowZero.length) {
    const word = (y, where) => t("{value}, not above 0, at {place}", { value: y, place: where });
    traces.push(trace(belowZero, "triangle-down", theme.muted, word));
  }
  return traces;
}

/** Saved states as small triangles at the upper edge. */
function checkpointTrace(entries, { marks, theme, range }) {
  const line = entries[0]?.curve.line;
  const places = (marks?.checkpoints ?? [])
    .map((mark) => ({ ...mark, x: placeOfStep(line, mark.step) }))
    .filter((mark) => mark.x !== null && (!range || (mark.x >= range[0] && mark.x <= range[1])));
  if (places.length === 0) {
    return [];
  }
  return [
    {
      ...EDGE,
      x: places.map((mark) => mark.x),
      y: places.map(() => 1),
      marker: {
        symbol: places.map((mark) => (mark.best ? "star" : "triangle-down")),
        size: places.map((mark) => (mark.best ? 9 : 6)),
        color: places.map((mark) => withAlpha(theme.text, mark.removed ? 0.35 : 0.8)),
      },
      hoverinfo: "skip",
      cliponaxis: false,
    },
  ];
}

/** A #rrggbb colour with an opacity. */
export function withAlpha(colour, alpha) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return `rgba(${r},${g},${b},${alpha})`;
}
