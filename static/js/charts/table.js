/* The table twin of a chart: the same points as rows, newest first. */

import { t } from "../ui/texts.js";
import { make } from "./dom.js";
import { count, place, value } from "./text.js";

const ROWS = 200;

/** A table of a curve's drawn points; long ones are cut, and say so. */
export function tableOf(key, curve, axis, unit, csvAddress) {
  const { line, smooth } = curve;
  const smoothed = new Map();
  smooth?.step.forEach((step, i) => smoothed.set(step, smooth.y[i]));
  const head = [t("Step"), ...(axis === "step" ? [] : [t("At")]), t("Value")];
  if (smooth) {
    head.push(t("Smoothed"));
  }
  const rows = [];
  const first = Math.max(0, line.x.length - ROWS);
  for (let i = line.x.length - 1; i >= first; i -= 1) {
    const cells = [count(line.step[i])];
    if (axis !== "step") {
      cells.push(place(line.x[i], axis));
    }
    cells.push(value(line.y[i], unit));
    if (smooth) {
      const at = smoothed.get(line.step[i]);
      cells.push(at === undefined ? "" : value(at, unit));
    }
    rows.push(make("tr", {}, ...cells.map((text) => make("td", { class: "number", text }))));
  }
  const table = make(
    "table",
    { class: "table chart-table" },
    make("caption", { class: "visually-hidden", text: t("{key}, newest first", { key }) }),
    make("thead", {}, make("tr", {}, ...head.map((text) => headCell(text)))),
    make("tbody", {}, ...rows),
  );
  const label = t("{key} as a table", { key });
  const scrolls = { tabindex: "0", role: "region", "aria-label": label };
  const wrap = make("div", { class: "chart-table-wrap", ...scrolls }, table);
  if (first > 0) {
    const total = count(line.x.length);
    const words = t("The newest {n} of {total} drawn points.", { n: ROWS, total });
    wrap.append(
      make(
        "p",
        { class: "hint", text: `${words} ` },
        make("a", { href: csvAddress, text: t("All as CSV") }),
      ),
    );
  }
  return wrap;
}

function headCell(text) {
  return make("th", { scope: "col", class: "number", text });
}
