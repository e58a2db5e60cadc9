/* The controls above the charts: search, smoothing, axis, superseded points, zoom, report. */

import { t, tp } from "../ui/texts.js";
import { make } from "./dom.js";
import { AXES, DEFAULT_WEIGHT, MAX_WEIGHT } from "./view.js";

export class Toolbar {
  /** change(part): called with the part of the view that a person changed. */
  constructor(view, reportAddress, change) {
    this.change = change;
    this.search = make("input", {
      type: "search",
      placeholder: t("Find a metric"),
      "aria-label": t("Find a metric: words, or a pattern between slashes"),
      "data-search": true,
      oninput: () => change({ query: this.search.value }),
    });
    this.slider = make("input", {
      type: "range",
      min: 0,
      max: MAX_WEIGHT,
      step: 0.01,
      id: "curves-smooth",
      oninput: () => this.#smooth(Number(this.slider.value)),
    });
    this.weight = make("output", { for: "curves-smooth", class: "curves-weight" });
    this.axis = make(
      "select",
      {
        "aria-label": t("Horizontal axis"),
        onchange: () => change({ axis: this.axis.value, range: null }),
      },
      ...AXES.map(({ kind, title }) => make("option", { value: kind, text: title })),
    );
    this.ghosts = make("input", {
      type: "checkbox",
      id: "curves-ghosts",
      onchange: () => change({ ghosts: this.ghosts.checked }),
    });
    this.reset = make("button", {
      type: "button",
      class: "button button-small",
      text: t("Whole run"),
      title: t("Undo the zoom (double-click a chart)"),
      onclick: () => change({ range: null }),
    });
    this.element = make(
      "div",
      { class: "curves-toolbar", role: "toolbar", "aria-label": t("Charts") },
      this.search,
      make(
        "span",
        { class: "curves-control" },
        label("curves-smooth", t("Smoothing")),
        this.slider,
        this.weight,
      ),
      make("span", { class: "curves-control" }, this.axis),
      make(
        "span",
        {
          class: "curves-control",
          title: t("What a resumed attempt replaced, as dotted lines"),
        },
        this.ghosts,
        label("curves-ghosts", t("Superseded")),
      ),
      this.reset,
      make("a", {
        class: "curves-report",
        href: reportAddress,
        text: t("Report"),
        title: t("One file that opens without a network"),
        download: true,
      }),
    );
    this.show(view);
  }

  /** Bring the controls in line with a view. */
  show(view) {
    if (this.search.value !== view.query) {
      this.search.value = view.query;
    }
    this.slider.value = view.weight;
    this.weight.textContent = strength(view.weight);
    this.axis.value = view.axis;
    this.ghosts.checked = view.ghosts;
    this.reset.hidden = !view.range;
  }

  /** Smoothing on or off, with one key. */
  toggleSmoothing() {
    this.#smooth(Number(this.slider.value) > 0 ? 0 : DEFAULT_WEIGHT);
  }

  #smooth(weight) {
    this.weight.textContent = strength(weight);
    this.change({ weight });
  }
}

function strength(weight) {
  return weight === 0 ? tp("smoothing", "off") : weight.toFixed(2);
}

function label(id, text) {
  return make("label", { for: id, text });
}
