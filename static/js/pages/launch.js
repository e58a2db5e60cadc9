/* The launch page: errors at their fields, live shares of weights, finding a setting, YAML lines. */

import { updateShares } from "./weight_shares.js";

const form = document.getElementById("launch");

/* The control that has the form rebuilt just now, and what was asked meanwhile. */
let rebuilder = null;
let asked = null;

form.addEventListener("input", onInput);
form.addEventListener("submit", onSubmit);
document.addEventListener("click", onClick);
document.body.addEventListener("htmx:afterSettle", onSettled);
document.body.addEventListener("temper:show", (event) => showPath(event.detail.path));
document.body.addEventListener("htmx:beforeRequest", onRebuild);
document.body.addEventListener("htmx:afterRequest", onAnswered);
showErrors();
showAddressed();

function onInput(event) {
  const target = event.target;
  if (target.matches("[data-find-setting]")) {
    event.stopPropagation();
    findSetting(target.value.trim().toLowerCase());
    return;
  }
  const list = target.closest("[data-weights]");
  if (list && target.name?.endsWith(".weight")) {
    updateShares(list);
  }
}

function onSubmit(event) {
  if (event.submitter?.value === "launch") {
    event.submitter.setAttribute("aria-disabled", "true");
  }
}

/* What is asked while the form is being rebuilt waits for the new form: htmx forgets requests of
   elements that are gone. Places in a list are other places by then, so moving and removing wait
   for another click. */
function onRebuild(event) {
  if (event.detail.target?.id !== "editor") {
    return;
  }
  const control = event.detail.elt;
  if (rebuilder && rebuilder !== control) {
    event.preventDefault();
    asked = control.matches("[value^='show:'], [value^='add:'], [name='project']") ? control : asked;
  } else {
    rebuilder = control;
  }
}

/* Without a new form nothing settles. */
function onAnswered(event) {
  if (event.detail.target?.id === "editor" && !event.detail.successful) {
    askNow();
  }
}

function askNow() {
  const wish = asked;
  rebuilder = asked = null;
  if (wish?.matches("select")) {
    const choice = form.elements[wish.name];
    choice.value = wish.value;
    choice.dispatchEvent(new Event("change", { bubbles: true }));
  } else if (wish) {
    form.querySelector(`[name='${wish.name}'][value='${CSS.escape(wish.value)}']`)?.click();
  }
}

function onSettled(event) {
  if (event.detail.target?.id === "preflight" || event.detail.target?.id === "editor") {
    showErrors();
    if (event.detail.target.id === "editor") {
      askNow();
    }
  } else if (event.detail.target?.id === "dialog" && !event.detail.target.open) {
    event.detail.target.showModal();
  }
}

/* The preflight panel lists what is wrong; each message goes to its field as well. */
function showErrors() {
  const found = new Map();
  for (const item of document.querySelectorAll("[data-errors] [data-path]")) {
    const path = nearest(item.dataset.path);
    const known = found.get(path);
    found.set(path, known ? `${known} ${item.dataset.message}` : item.dataset.message);
  }
  for (const place of form.querySelectorAll("[data-error-for]")) {
    const path = place.dataset.errorFor;
    const message = found.get(path) ?? "";
    if (place.textContent !== message) {
      place.textContent = message;
    }
    const control = document.getElementById(`field-${path}`);
    if (control) {
      message ? control.setAttribute("aria-invalid", "true") : control.removeAttribute("aria-invalid");
    }
    if (message) {
      openAround(place);
    }
  }
}

/* An error below a field, such as params.max_digits, belongs to the field. */
function nearest(path) {
  let place = path;
  while (place && !form.querySelector(`[data-error-for="${CSS.escape(place)}"]`)) {
    place = place.includes(".") ? place.slice(0, place.lastIndexOf(".")) : "";
  }
  return place;
}

function openAround(element) {
  const details = element.closest("details");
  if (details) {
    details.open = true;
  }
}

function onClick(event) {
  const link = event.target.closest?.("[data-goto]");
  if (link) {
    event.preventDefault();
    showPath(link.dataset.goto);
  }
  const line = event.target.closest?.("[data-line]");
  if (line) {
    selectLine(document.querySelector("[data-yaml]"), Number(line.dataset.line));
  }
}

/* A link to a field may lead behind a fold. */
function showAddressed() {
  const path = location.hash.match(/^#(?:field|item)-([\w.]+)$/)?.[1];
  if (path) {
    showPath(path);
  }
}

function showPath(path) {
  const field =
    document.getElementById(`field-${path}`) ??
    document.getElementById(`item-${path}`) ??
    form.querySelector(`[data-error-for="${CSS.escape(nearest(path))}"]`);
  if (!field) {
    return;
  }
  openAround(field);
  field.scrollIntoView({ block: "center" });
  const control = field.matches("input, select, textarea")
    ? field
    : field.querySelector("input:not([type=hidden]), select, textarea");
  control?.focus({ preventScroll: true });
}

function selectLine(area, line) {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  area.scrollTop = Math.max(0, (line - 5) * (area.scrollHeight / lines.length));
}

function findSetting(words) {
  for (const field of form.querySelectorAll("[data-field]")) {
    const hit = !words || field.dataset.words.toLowerCase().includes(words);
    field.hidden = !hit;
    if (hit && words) {
      openAround(field);
    }
  }
}
