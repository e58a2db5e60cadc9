/* Axes, markers and the frame of a figure. Pure. */

import { t } from "../ui/texts.js";
import { placeOfStep } from "./series.js";
import { duration, escapeMarkup } from "./text.js";

const AXIS_TITLES = {
  step: t("step"),
  relative: t("training time"),
  wall: "",
  tokens: t("completion tokens"),
  prompts: t("prompts"),
};
const PLACE = { n: "%{x:,.0f}" };
const HOVER_TITLES = {
  step: t("step {n}", PLACE),
  tokens: t("{n} tokens", PLACE),
  prompts: t("{n} prompts", PLACE),
};
const TIME_STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
];
const FONT_PX = 11;
const LETTER_PX = 5.5; // of the markers' words, on average
const PLOT_PX = 270; // the narrowest plot that is usual

/** The layout for the traces of a panel. */
export function layoutOf(entries, data, options) {
  const { theme, revision } = options;
  const { shapes, annotations } = markers(entries, options);
  return {
    font: { family: theme.font, size: FONT_PX, color: theme.muted },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: {
      l: 52,
      r: 14,
      t: annotations.length ? 20 : 10,
      b: 38,
    },
    hovermode: "x unified",
    hoverlabel: {
      bgcolor: theme.surface,
      bordercolor: theme.line,
      font: { color: theme.text, size: FONT_PX + 1 },
    },
    dragmode: "zoom",
    showlegend: entries.length > 1,
    legend: { orientation: "h", y: -0.25, font: { color: theme.text } },
    uirevision: revision,
    xaxis: xAxis(options),
    yaxis: yAxis(data, options),
    yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
    shapes,
    annotations,
  };
}

function xAxis({ axis, range, extent, theme }) {
  const shown = range ?? padded(extent);
  return {
    type: axis === "wall" ? "date" : "linear",
    title: { text: AXIS_TITLES[axis], standoff: 6, font: { size: FONT_PX } },
    gridcolor: theme.grid,
    linecolor: theme.line,
    zeroline: false,
    showspikes: false,
    exponentformat: "SI",
    ...(HOVER_TITLES[axis] ? { unifiedhovertitle: { text: HOVER_TITLES[axis] } } : {}),
    nticks: 7,
    ...(shown ? { range: [...shown], autorange: false } : { autorange: true }),
    ...(axis === "relative" && shown ? timeTicks(shown) : {}),
    ...(axis === "step" && shown && shown[1] - shown[0] < 7 ? { dtick: 1 } : {}),
  };
}

function yAxis(data, { metric, isLog, theme }) {
  const range = isLog ? null : rangeOfConstant(data);
  return {
    type: isLog ? "log" : "linear",
    title: { text: escapeMarkup(metric.unit ?? ""), standoff: 4, font: { size: FONT_PX } },
    gridcolor: theme.grid,
    linecolor: theme.line,
    zerolinecolor: theme.line,
    fixedrange: true,
    automargin: true,
    exponentformat: "e",
    nticks: 5,
    ...(metric.unit === "bytes" ? { tickformat: ".3~s" } : {}),
    ...(range ? { range, autorange: false } : { autorange: true }),
  };
}

/** A range around a value that never changes: Plotly's own would drown small ones in ±1. */
function rangeOfConstant(data) {
  let low = Infinity;
  let high = -Infinity;
  for (const trace of data) {
    if (trace.yaxis !== "y2" && !trace.error_y) {
      for (const y of trace.y) {
        low = y < low ? y : low;
        high = y > high ? y : high;
      }
    } else if (trace.error_y) {
      return null;
    }
  }
  const size = Math.abs(low);
  const isDrawable = size > 1e-300 && size < 1e300; // Plotly's arithmetic ends there
  return low === high && isDrawable ? [low - size / 2, low + size / 2] : null;
}

/** Stage edges and resumed attempts as lines, with words above them where there is room. */
function markers(entries, { marks, theme, range, extent }) {
  const line = entries[0]?.curve.line;
  const shown = range ?? padded(extent);
  const stages = marks?.stages ?? [];
  const found = [
    ...(stages.length > 1 ? stages : []).map(({ step, name }) => {
      return { step, words: name, colour: theme.muted, dash: "dot" };
    }),
    ...(marks?.attempts ?? []).map(({ step, attempt }) => {
      const words = t("attempt {number}", { number: attempt });
      return { step, words, colour: theme.warn, dash: "dash" };
    }),
    ...(marks?.comments ?? []).map((step) => {
      return { step, words: t("comment"), colour: theme.muted, dash: "dashdot" };
    }),
  ]
    .map((mark) => ({ ...mark, x: placeOfStep(line, mark.step) }))
    .filter(({ x }) => x !== null && shown && x >= shown[0] && x <= shown[1])
    .sort((a, b) => a.x - b.x);
  const place = (x) => ((x - shown[0]) / (shown[1] - shown[0])) * PLOT_PX;
  return {
    shapes: found.filter(({ step }) => step > 0).map(edgeLine),
    annotations: found.filter((mark, i) => hasRoom(mark, found[i + 1], place)).map(edgeWords),
  };
}

/** Whether the words of a mark end before the next mark and before the edge. */
function hasRoom(mark, next, place) {
  const end = place(mark.x) + mark.words.length * LETTER_PX + 4;
  return end <= Math.min(PLOT_PX + LETTER_PX, next ? place(next.x) : Infinity);
}

function edgeLine({ x, colour, dash }) {
  const line = { color: colour, width: 1, dash };
  return {
    type: "line",
    xref: "x",
    yref: "paper",
    x0: x,
    x1: x,
    y0: 0,
    y1: 1,
    layer: "below",
    line,
  };
}

function edgeWords({ x, words, colour }) {
  return {
    x,
    xref: "x",
    y: 1,
    yref: "paper",
    yanchor: "bottom",
    xanchor: "left",
    text: escapeMarkup(words),
    showarrow: false,
    font: { size: FONT_PX - 1, color: colour },
  };
}

/** Ticks at round lengths of time between two places in seconds. */
function timeTicks([from, to]) {
  const fitting = TIME_STEPS_S.find((step) => (to - from) / step <= 6);
  const step = fitting ?? Math.ceil((to - from) / 6 / 86400) * 86400;
  const tickvals = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    tickvals.push(at);
  }
  return { tickmode: "array", tickvals, ticktext: tickvals.map((at) => duration(at)) };
}

/** A range with a little air on both sides, so that points at the ends are not cut. */
function padded(extent) {
  if (!extent) {
    return null;
  }
  const air = (extent[1] - extent[0]) * 0.02 || 1;
  return [extent[0] - air, extent[1] + air];
}
