/* Mounts the curves of a run in <div id="curves">: sections of charts that stay up to date.
   Attributes of the div give the run and the addresses. Loaded by the Curves tab of a run. */

import { addKeys } from "../ui/keys.js";
import { t, tp } from "../ui/texts.js";
import { subscribe } from "../live/stream.js";
import { Board } from "./board.js";
import { Chart } from "./chart.js";
import { onThemeChange, readTheme } from "./colours.js";
import { make, stateBox } from "./dom.js";
import { Feed } from "./feed.js";
import { loadPlotly } from "./plotly.js";
import { count } from "./text.js";
import { Toolbar } from "./toolbar.js";
import { formatView, matches, parseView } from "./view.js";

const NEW_KEYS_MS = 500;
const OLD_KEYS_MS = 30_000;

class Grid {
  constructor(root) {
    this.root = root;
    this.data = root.dataset;
    this.view = parseView(location.search);
    this.theme = readTheme();
    this.marks = null;
    this.charts = new Map();
    const { curvesUrl, keysUrl, csvUrl, run } = this.data;
    this.feed = new Feed({ curves: curvesUrl, keys: keysUrl, csv: csvUrl }, [run]);
    this.board = new Board(
      this.feed,
      () => this.view,
      (chart, curves) => this.#look(chart, curves),
    );
    this.toolbar = new Toolbar(this.view, this.data.reportUrl, (part) => this.change(part));
    this.notice = make("p", { class: "curves-notice hint", role: "status", hidden: true });
    this.sections = make("div", { class: "curves-sections" }, skeleton());
    root.replaceChildren(this.toolbar.element, this.notice, this.sections);
    this.board.onStale = (error) => this.#note({ stale: error?.message ?? "" });
  }

  /** Load and keep up to date. */
  async start() {
    loadPlotly();
    window.addEventListener("popstate", () => this.#adopt(parseView(location.search)));
    onThemeChange(() => {
      this.theme = readTheme();
      this.board.redraw();
    });
    subscribe([`run:${this.data.run}`], (hint) => this.#onHint(hint));
    const toggle = () => this.toolbar.toggleSmoothing();
    addKeys([{ keys: "s", what: t("Smoothing on or off"), run: toggle }]);
    await this.loadKeys();
  }

  /** Fetch the list of metrics and add charts for new ones. */
  async loadKeys() {
    this.keysAt = performance.now();
    try {
      const answer = await this.feed.keys();
      this.marks = answer.marks;
      this.#build(answer.sections, answer.run.is_terminal);
      this.board.redraw();
      this.board.refresh();
    } catch (error) {
      if (this.charts.size === 0) {
        const action = error.isSignedOut
          ? { text: t("Sign in again"), onclick: () => location.reload() }
          : { text: tp("button", "Try again"), onclick: () => this.loadKeys() };
        document.body.addEventListener("temper:back", () => this.loadKeys(), { once: true });
        this.sections.replaceChildren(
          stateBox("error", t("The metrics could not be loaded"), error.message, action),
        );
      } else {
        this.#note({ stale: error.message });
      }
    }
  }

  /** Change the view: address, controls, charts. A zoom can be undone with the browser's Back. */
  change(part) {
    const isZoom = "range" in part && !("axis" in part);
    this.view = { ...this.view, ...part };
    const address = location.pathname + formatView(this.view, location.search) + location.hash;
    history[isZoom ? "pushState" : "replaceState"](null, "", address);
    this.#apply();
  }

  #adopt(view) {
    this.view = view;
    this.#apply();
  }

  #apply() {
    this.toolbar.show(this.view);
    this.#filter();
    this.board.redraw();
    this.board.refresh();
  }

  #onHint({ kind, data }) {
    if (kind === "metric") {
      this.board.refresh();
    }
    if (this.#mayBringKeys(kind, data)) {
      this.board.refresh();
      // A timer that runs is left alone: hints that keep coming must not put it off for ever.
      this.keysTimer ??= setTimeout(() => {
        this.keysTimer = null;
        this.loadKeys();
      }, NEW_KEYS_MS);
    }
  }

  /** Whether there may be metrics that have no chart yet: a stage logs its own ones. */
  #mayBringKeys(kind, data) {
    if (kind !== "metric") {
      return ["evaluation", "checkpoint", "comment", "state", "resync"].includes(kind);
    }
    const isNewStage = data?.stage !== undefined && data.stage !== this.stage;
    this.stage = data?.stage ?? this.stage;
    const isOld = performance.now() - this.keysAt > OLD_KEYS_MS;
    return isNewStage || isOld || this.charts.size === 0;
  }

  #build(sections, isOver) {
    if (sections.length === 0) {
      const words = isOver
        ? t("This run ended before its first step was done.")
        : t("The first values appear here by themselves when the first step is done.");
      const head = isOver ? t("No metric") : t("No metric yet");
      this.sections.replaceChildren(stateBox("empty", head, words));
      return;
    }
    if (this.charts.size === 0) {
      this.sections.replaceChildren();
    }
    sections.forEach((section, place) => this.#section(section, place));
    this.#filter();
  }

  #section({ slug, title, keys }, place) {
    let box = this.sections.querySelector(`:scope > [data-slug="${CSS.escape(slug)}"]`);
    if (!box) {
      box = make(
        "details",
        { class: "curves-section", "data-slug": slug, open: !this.view.closed.has(slug) },
        make("summary", {}, make("h2", { text: title }), make("span", { class: "hint" })),
        make("div", { class: "curves-grid" }),
      );
      box.addEventListener("toggle", () => this.#toggleSection(slug, box.open));
      this.sections.insertBefore(box, this.sections.children[place] ?? null);
    }
    for (const facts of keys) {
      if (!this.charts.has(facts.key)) {
        const chart = new Chart(facts, this.#wishes());
        this.charts.set(facts.key, chart);
        box.lastElementChild.append(chart.element);
        this.board.add(chart);
      }
    }
  }

  #toggleSection(slug, isOpen) {
    const closed = new Set(this.view.closed);
    if (isOpen === !closed.has(slug)) {
      return;
    }
    closed[isOpen ? "delete" : "add"](slug);
    this.change({ closed });
  }

  #wishes() {
    return {
      zoom: (range) => this.change({ range }),
      hover: (x) => this.board.visible().forEach((chart) => chart.point(x)),
      file: (ending, key) => this.feed.file(ending, key, this.view),
      toggle: (what, key) => {
        const chosen = new Set(this.view[what]);
        chosen[chosen.has(key) ? "delete" : "add"](key);
        this.change({ [what]: chosen });
      },
    };
  }

  /** Show the charts whose names match, and how many. */
  #filter() {
    let shown = 0;
    for (const box of this.sections.querySelectorAll(".curves-section")) {
      const charts = [...box.querySelectorAll(".chart")];
      charts.forEach((chart) => (chart.hidden = !matches(chart.dataset.key, this.view.query)));
      const left = charts.filter((chart) => !chart.hidden).length;
      shown += left;
      box.hidden = left === 0;
      box.querySelector("summary .hint").textContent = count(left);
    }
    this.root.dataset.found = String(shown);
    const isNone = shown === 0 && this.charts.size > 0;
    const { query } = this.view;
    this.#note({ none: isNone ? t("No metric matches “{query}”.", { query }) : "" });
  }

  #look(chart, curves) {
    const { axis, range, log, tables, weight } = this.view;
    const entries = curves.map((curve, i) => ({
      curve,
      name: chart.key,
      colour: this.theme.series[i % 8],
    }));
    const isLog = log.has(chart.key);
    const options = {
      metric: chart.facts,
      axis,
      range,
      extent: this.board.extent(),
      isLog,
      weight,
      theme: this.theme,
      marks: this.marks,
      intervals: this.marks?.evaluations[chart.key],
      revision: `${axis} ${isLog} ${range ?? "whole"}`,
    };
    return chart.show({ entries, options, isTable: tables.has(chart.key) });
  }

  /** Say what is the matter: { stale } with the data, { none } with the search. */
  #note(part) {
    this.notes = { ...this.notes, ...part };
    const words = Object.values(this.notes).filter(Boolean).join(" ");
    this.notice.hidden = words === "";
    this.notice.textContent = words;
  }
}

function skeleton() {
  const boxes = Array.from({ length: 6 }, () => make("div", { class: "skeleton chart-skeleton" }));
  return make("div", { class: "curves-grid", "aria-hidden": "true" }, ...boxes);
}

const root = document.getElementById("curves");
if (root) {
  new Grid(root).start();
}
