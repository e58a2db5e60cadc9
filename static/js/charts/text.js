/* Words and numbers of the charts. Pure. */

import { t, tn } from "../ui/texts.js";
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
    return m ? t("{h} h {m} min", { h, m }) : t("{n} h", { n: h });
  }
  if (m) {
    return s ? t("{m} min {s} s", { m, s }) : t("{n} min", { n: m });
  }
  return t("{n} s", { n: s });
}

/** A place on the axis, in words. */
export function place(x, kind) {
  switch (kind) {
    case "relative":
      return duration(x);
    case "wall":
      return new Date(x).toLocaleString();
    case "tokens":
      return t("{n} tokens", { n: count(x) });
    case "prompts":
      return t("{n} prompts", { n: count(x) });
    default:
      return t("step {n}", { n: count(x) });
  }
}

/** How much of the data a chart shows. */
export function honesty(curve, range) {
  const base = range ? honestyInside(curve, range) : honestyOfAll(curve);
  const bad = t("{n} not finite", { n: count(curve.bad) });
  return curve.bad ? `${base} · ${bad}` : base;
}

function honestyOfAll({ line, exact, total }) {
  const n = count(line.x.length);
  return exact
    ? tn("all {n} point", "all {n} points", line.x.length, { n })
    : t("{n} of {total} points, extremes exact", { n, total: count(total) });
}

function honestyInside({ line, exact, total }, range) {
  const drawn = countInside(line, range);
  const n = count(drawn);
  return exact
    ? tn("all {n} point in this window", "all {n} points in this window", drawn, { n })
    : t("{n} of {total} points in this window, extremes exact", { n, total: count(total) });
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
    return t("{key} has no finite value yet.", { key });
  }
  const [first, last] = [finite[0], finite[finite.length - 1]];
  const at = (i) => value(line.y[i], unit);
  if (finite.length === 1) {
    const where = place(line.x[first], axisKind);
    return t("{key} is {value} at {where}.", { key, value: at(first), where });
  }
  const words = {
    key,
    from: at(first),
    to: at(last),
    start: place(line.x[first], axisKind),
    end: place(line.x[last], axisKind),
  };
  const change = line.y[last] - line.y[first];
  if (change > 0) {
    return t("{key} rose from {from} to {to} between {start} and {end}.", words);
  }
  return change < 0
    ? t("{key} fell from {from} to {to} between {start} and {end}.", words)
    : t("{key} stayed at {from} between {start} and {end}.", words);
}
