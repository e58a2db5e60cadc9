/* Words and numbers of the charts. Pure. */

import { countInside } from "./series.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Text that Plotly does not take for markup. */
export function escapeMarkup(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

/** A count with separators. */
export function count(n) {
  return whole.format(n);
}

/** A value in four significant digits, with its unit where that changes how it is written. */
export function value(number, unit = "") {
  if (Number.isNaN(number)) {
    return "NaN";
  }
  if (!Number.isFinite(number)) {
    return number > 0 ? "∞" : "−∞";
  }
  if (unit === "bytes") {
    return bytes(number);
  }
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
    return sign(number.toExponential(2).replace("e+", "e"));
  }
  if (Number.isInteger(number)) {
    return sign(whole.format(number));
  }
  return sign(String(Number(number.toPrecision(4))));
}

function sign(text) {
  return text.replace(/^-/, "−").replace("e-", "e−");
}

function bytes(number) {
  const at = number > 0 ? Math.min(4, Math.floor(Math.log2(number) / 10)) : 0;
  return `${Number((number / 1024 ** at).toPrecision(3))} ${BYTES[at]}`;
}

/** A length of time, from seconds. */
export function duration(seconds) {
  const total = Math.round(seconds);
  const [h, m, s] = [Math.floor(total / 3600), Math.floor((total % 3600) / 60), total % 60];
  if (h) {
    return m ? `${h} h ${m} min` : `${h} h`;
  }
  if (m) {
    return s ? `${m} min ${s} s` : `${m} min`;
  }
  return `${s} s`;
}

/** A place on the axis, in words. */
export function place(x, kind) {
  switch (kind) {
    case "relative":
      return duration(x);
    case "wall":
      return new Date(x).toLocaleString();
    case "tokens":
      return `${count(x)} tokens`;
    case "prompts":
      return `${count(x)} prompts`;
    default:
      return `step ${count(x)}`;
  }
}

/** How much of the data a chart shows. */
export function honesty(curve, range) {
  const where = range ? " in this window" : "";
  const drawn = countInside(curve.line, range);
  const base = curve.exact
    ? `all ${count(drawn)} ${drawn === 1 ? "point" : "points"}${where}`
    : `${count(drawn)} of ${count(curve.total)} points${where}, extremes exact`;
  return curve.bad ? `${base} · ${count(curve.bad)} not finite` : base;
}

/** One sentence that says what the curve does, for those who do not see it. */
export function summary(key, line, axisKind, unit) {
  const finite = [];
  for (let i = 0; i < line.y.length; i += 1) {
    if (Number.isFinite(line.y[i])) {
      finite.push(i);
    }
  }
  if (finite.length === 0) {
    return `${key} has no finite value yet.`;
  }
  const [first, last] = [finite[0], finite[finite.length - 1]];
  const at = (i) => value(line.y[i], unit);
  if (finite.length === 1) {
    return `${key} is ${at(first)} at ${place(line.x[first], axisKind)}.`;
  }
  const change = line.y[last] - line.y[first];
  const verb = change > 0 ? "rose" : change < 0 ? "fell" : "stayed";
  const path = change === 0 ? `at ${at(first)}` : `from ${at(first)} to ${at(last)}`;
  return `${key} ${verb} ${path} between ${place(line.x[first], axisKind)} and ${place(
    line.x[last],
    axisKind,
  )}.`;
}
