/* What a person chose to see: kept in the page's address, so that a link shows the same. Pure. */

import { t } from "../ui/texts.js";

export const AXES = [
  { kind: "step", title: t("Steps") },
  { kind: "relative", title: t("Training time") },
  { kind: "wall", title: t("Clock") },
  { kind: "tokens", title: t("Tokens") },
  { kind: "prompts", title: t("Prompts") },
];
export const DEFAULT_WEIGHT = 0.6;
export const MAX_WEIGHT = 0.99;

/** The view that an address asks for; what makes no sense is left at its default. */
export function parseView(search) {
  const params = new URLSearchParams(search);
  const axis = params.get("x");
  const from = number(params.get("from"));
  const to = number(params.get("to"));
  const weight = number(params.get("smooth"));
  return {
    axis: AXES.some((known) => known.kind === axis) ? axis : "step",
    weight: weight === null ? DEFAULT_WEIGHT : Math.min(MAX_WEIGHT, Math.max(0, weight)),
    ghosts: params.get("superseded") === "1",
    query: params.get("q") ?? "",
    range: from !== null && to !== null && from < to ? [from, to] : null,
    closed: new Set(params.getAll("closed")),
    log: new Set(params.getAll("log")),
    tables: new Set(params.getAll("table")),
  };
}

/** The address of a view: only what differs from the default, other parameters kept. */
export function formatView(view, search) {
  const params = new URLSearchParams(search);
  const set = (name, value, isDefault) => {
    params.delete(name);
    if (!isDefault) {
      params.set(name, value);
    }
  };
  set("x", view.axis, view.axis === "step");
  set("smooth", String(view.weight), view.weight === DEFAULT_WEIGHT);
  set("superseded", "1", !view.ghosts);
  set("q", view.query, view.query === "");
  set("from", String(view.range?.[0]), !view.range);
  set("to", String(view.range?.[1]), !view.range);
  for (const [name, values] of [
    ["closed", view.closed],
    ["log", view.log],
    ["table", view.tables],
  ]) {
    params.delete(name);
    for (const value of [...values].sort()) {
      params.append(name, value);
    }
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}

/** Whether a metric's name matches what is searched for: every word, or a regular expression
    between slashes. */
export function matches(key, query) {
  const text = query.trim();
  const pattern = /^\/(.+)\/$/.exec(text);
  if (pattern) {
    try {
      return new RegExp(pattern[1], "i").test(key);
    } catch {
      return false;
    }
  }
  const words = text.toLowerCase().split(/\s+/);
  return words.every((word) => key.toLowerCase().includes(word));
}

function number(text) {
  const parsed = text === null || text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(parsed) ? parsed : null;
}
