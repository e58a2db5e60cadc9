/* The elements of a chart's panel: head with buttons and menu, body, foot. Made by chart.js. */

import { t } from "../ui/texts.js";
import { icon, make } from "./dom.js";

let lastId = 0;

/** The parts of a panel. wishes: { toggle(what, key), file(ending, key) }; picture(format). */
export function buildPanel(facts, wishes, picture) {
  const { key } = facts;
  const id = `chart-${(lastId += 1)}`;
  const toggle = (what) => () => wishes.toggle(what, key);
  const parts = {
    tableButton: button("table", t("{key} as a table", { key }), toggle("tables")),
    logButton: button("log", t("Logarithmic axis for {key}", { key }), toggle("log")),
    value: make("span", { class: "chart-value" }),
    cross: make("div", { class: "chart-cross", hidden: true }),
    body: make("div", { class: "chart-body" }, make("div", { class: "skeleton chart-skeleton" })),
    foot: make("p", { class: "chart-foot hint" }),
    sentence: make("p", { class: "visually-hidden", id: `${id}-words` }),
  };
  const head = make(
    "header",
    { class: "chart-head" },
    make("h3", { class: "chart-title", title: facts.meaning || key, text: key }),
    parts.value,
    parts.logButton,
    parts.tableButton,
    menu(key, wishes, picture),
  );
  const attributes = { class: "chart", "data-key": key, "data-state": "loading" };
  parts.element = make(
    "article",
    { ...attributes, "aria-describedby": `${id}-words` },
    head,
    parts.body,
    parts.foot,
    parts.sentence,
  );
  return parts;
}

function button(name, label, onclick) {
  const attributes = { type: "button", class: "chart-button", title: label, "aria-label": label };
  return make("button", { ...attributes, onclick }, icon(name));
}

function menu(key, wishes, picture) {
  const item = (text, onclick) =>
    make("li", {}, make("button", { type: "button", class: "menu-item", text, onclick }));
  const link = (ending) => {
    const text = t("{format} of what is shown", { format: ending.toUpperCase() });
    const anchor = make("a", { class: "menu-item", href: "#", text });
    anchor.addEventListener("click", () => (anchor.href = wishes.file(ending, key)));
    return make("li", {}, anchor);
  };
  const label = t("Save {key}", { key });
  return make(
    "details",
    { class: "chart-menu", onfocusout: closeWhenLeft, onkeydown: closeOnEscape },
    make("summary", { class: "chart-button", title: label, "aria-label": label }, icon("save")),
    make(
      "ul",
      { class: "menu" },
      link("csv"),
      link("json"),
      item(t("PNG picture"), () => picture("png")),
      item(t("SVG picture"), () => picture("svg")),
    ),
  );
}

function closeWhenLeft(event) {
  if (!event.currentTarget.contains(event.relatedTarget)) {
    event.currentTarget.open = false;
  }
}

function closeOnEscape(event) {
  if (event.key === "Escape") {
    event.currentTarget.open = false;
    event.currentTarget.querySelector("summary").focus();
  }
}
