/* One panel: a metric's chart with its head, its foot and its table twin.
   Draws only on screen; keeps its Plotly figure for good, so that a zoom survives data. */

import { t, tp } from "../ui/texts.js";
import { readLightTheme } from "./colours.js";
import { make, stateBox } from "./dom.js";
import { figureOf } from "./figure.js";
import { buildPanel } from "./panel.js";
import { loadPlotly } from "./plotly.js";
import { nearest } from "./series.js";
import { tableOf } from "./table.js";
import { count, honesty, place, summary, value } from "./text.js";
import { fromClock, toClock } from "./clock.js";

const CONFIG = { displayModeBar: false, responsive: false, doubleClick: false, scrollZoom: false };
const PICTURE = { width: 1000, height: 500 };

export class Chart {
  /** wishes: { zoom(range|null), hover(x|null), toggle(what, key), file(ending, key) }. */
  constructor(facts, wishes) {
    this.key = facts.key;
    this.facts = facts;
    this.wishes = wishes;
    this.input = null;
    this.isDrawn = false;
    Object.assign(
      this,
      buildPanel(facts, wishes, (format) => this.#picture(format)),
    );
    this.#newPlot();
  }

  /** Show curves. input: { entries, options, isTable, view, axis }. */
  async show(input) {
    this.input = input;
    this.#words();
    const filled = input.entries.filter(({ curve }) => curve.line.x.length > 0);
    this.tableButton.setAttribute("aria-pressed", String(input.isTable));
    this.logButton.setAttribute("aria-pressed", String(input.options.isLog));
    if (filled.length === 0) {
      this.#replace(this.#emptyBox(input));
    } else if (input.isTable) {
      this.#showTable(filled[0].curve);
    } else {
      await this.#draw(input).catch((error) => this.#giveUp(error, filled[0].curve));
    }
  }

  /** Say that the data could not be had; what was drawn stays, marked as stale. */
  fail(error, retry) {
    this.element.dataset.state = this.isDrawn ? "stale" : "error";
    if (this.isDrawn) {
      this.foot.textContent = t("Not up to date: {why}", { why: error.message });
    } else {
      const action = error.isSignedOut
        ? { text: t("Sign in again"), onclick: () => location.reload() }
        : { text: tp("button", "Try again"), onclick: retry };
      const title = t("The curve could not be loaded");
      this.#replace(stateBox("error", title, error.message, action));
    }
  }

  /** Put the crosshair at a place of the axis, or take it away. */
  point(x) {
    const axis = this.plot._fullLayout?.xaxis;
    const line = this.input?.entries[0]?.curve.line;
    const at = x === null || !line ? -1 : nearest(line.x, x);
    if (at < 0 || !axis || !this.isDrawn || this.input.isTable) {
      this.cross.hidden = true;
      this.#lastValue();
      return;
    }
    const left = axis._offset + axis.d2p(toClock(x, this.input.options.axis));
    const inside = left >= axis._offset && left <= axis._offset + axis._length;
    this.cross.hidden = !inside;
    this.cross.style.transform = `translateX(${left}px)`;
    const words = place(line.x[at], this.input.options.axis);
    this.value.classList.toggle("is-bad", !Number.isFinite(line.y[at]));
    this.value.textContent = `${value(line.y[at], this.facts.unit)} · ${words}`;
  }

  #newPlot() {
    this.isDrawn = false;
    this.plot = make("div", { class: "chart-plot" });
    new ResizeObserver(() => this.#resize()).observe(this.plot);
  }

  #showTable(curve) {
    const address = this.wishes.file("csv", this.key);
    const { axis } = this.input.options;
    this.#replace(tableOf(this.key, curve, axis, this.facts.unit, address));
  }

  /** Plotly cannot scale some numbers, such as a span of 1e308: show them all the same. */
  #giveUp(error, curve) {
    this.#newPlot();
    this.#showTable(curve);
    this.foot.textContent = t("Not drawn, since its values do not fit one scale ({why})", {
      why: error.message,
    });
  }

  async #draw(input) {
    const Plotly = await loadPlotly();
    if (this.input !== input) {
      return;
    }
    if (this.plot.parentNode !== this.body) {
      this.#replace(this.plot, this.cross);
    }
    const { data, layout, belowZero } = figureOf(input.entries, input.options);
    await Plotly.react(this.plot, data, layout, CONFIG);
    if (!this.isDrawn) {
      this.isDrawn = true;
      this.#listen();
    }
    this.element.dataset.state = "drawn";
    this.cross.hidden = true;
    if (belowZero) {
      const words = t("{n} not above 0, at the lower edge", { n: count(belowZero) });
      this.foot.textContent += ` · ${words}`;
    }
  }

  #listen() {
    const axis = () => this.input.options.axis;
    this.plot.on("plotly_relayout", (change) => {
      if (change["xaxis.range[0]"] !== undefined) {
        const range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
        this.wishes.zoom(range.map((x) => fromClock(x, axis())));
      }
    });
    this.plot.on("plotly_doubleclick", () => this.wishes.zoom(null));
    this.plot.on("plotly_hover", ({ xvals }) => this.wishes.hover(fromClock(xvals[0], axis())));
    this.plot.on("plotly_unhover", () => this.wishes.hover(null));
  }

  #words() {
    const { entries, options } = this.input;
    const curve = entries[0]?.curve;
    this.element.dataset.state = "drawn";
    this.foot.textContent = curve ? honesty(curve, options.range) : "";
    this.sentence.textContent = curve
      ? summary(this.key, curve.line, options.axis, this.facts.unit)
      : "";
    this.#lastValue();
  }

  #lastValue() {
    const y = this.input?.entries[0]?.curve.line.y ?? [];
    const last = y[y.length - 1];
    this.value.textContent = last === undefined ? "" : value(last, this.facts.unit);
    this.value.classList.toggle("is-bad", last !== undefined && !Number.isFinite(last));
  }

  #emptyBox({ entries, options }) {
    if (entries.some(({ curve }) => !curve.hasAxis)) {
      return stateBox(
        "empty",
        t("Not on this axis"),
        t("The run has not counted what the axis needs."),
      );
    }
    return options.range
      ? stateBox(
          "empty",
          t("Nothing in this window"),
          t("Double-click a chart to see the whole run."),
        )
      : stateBox("empty", t("No value yet"), t("The first one appears here by itself."));
  }

  #replace(...children) {
    this.body.replaceChildren(...children);
  }

  async #picture(format) {
    const Plotly = await loadPlotly();
    const { entries, options } = this.input;
    const theme = readLightTheme();
    const light = entries.map((entry, i) => ({
      ...entry,
      colour: theme.series[i % theme.series.length],
    }));
    const { data, layout } = figureOf(light, { ...options, theme });
    const titled = {
      ...layout,
      title: { text: this.key.replace(/</g, "&lt;"), font: { size: 15, color: theme.text } },
      margin: { ...layout.margin, t: 48 },
      paper_bgcolor: theme.surface,
    };
    const filename = this.key.replace(/[^a-zA-Z0-9]+/g, "-");
    await Plotly.downloadImage({ data, layout: titled }, { format, filename, ...PICTURE });
  }

  #resize() {
    if (this.isDrawn && this.plot.isConnected && this.plot.clientWidth > 0) {
      window.Plotly.Plots.resize(this.plot);
    }
  }
}
