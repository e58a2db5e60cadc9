/* Small makers of elements, so that nothing is built from strings of markup. */

const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
  table: "M2.5 3.5h11v9h-11zM2.5 6.5h11M6.5 6.5v6",
  chart: "M2 13.5h12M3 11l3.2-4 2.6 2.4L13 4",
  save: "M8 2.5v7M5 7l3 3 3-3M3 13h10",
  log: "M3 13V3M3 13h10M5 11c4 0 6-3 7.5-7.5",
  empty: "M2 13.5h12M3 10h2M7 10h2M11 10h2",
  error: "M8 2.2l6.2 11H1.8zM8 6.4v3.2M8 11.4v.2",
};

/** An element with attributes and children; `on...` entries are listeners, `text` its text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, given] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), given);
    } else if (name === "text") {
      element.textContent = given;
    } else if (given === true) {
      element.setAttribute(name, "");
    } else if (given !== false && given !== null && given !== undefined) {
      element.setAttribute(name, given);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** One of the line icons. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** What stands where there is no data: why, and what to do. */
export function stateBox(kind, title, words, action = null) {
  const box = make("div", { class: `state${kind === "error" ? " state-error" : ""}` });
  box.append(icon(kind), make("h3", { text: title }), make("p", { text: words }));
  if (action) {
    box.append(make("button", { type: "button", class: "button button-small", ...action }));
  }
  return box;
}
