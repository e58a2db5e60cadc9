/* Fetches curves and lists of metrics. One place that knows the addresses and what can go wrong. */

import { t } from "../ui/texts.js";
import { decodeAnswer } from "./series.js";

/** Why something could not be fetched, in words for people. */
export class FeedError extends Error {
  constructor(message, isSignedOut = false) {
    super(message);
    this.isSignedOut = isSignedOut;
  }
}

export class Feed {
  /** addresses: { curves, keys, csv }; runs: ids; budget: points of one line. */
  constructor(addresses, runs, budget = 1500) {
    this.addresses = addresses;
    this.runs = runs;
    this.budget = budget;
  }

  /** The metrics of the run in their sections, and its markers. */
  keys() {
    return fetchJson(this.addresses.keys);
  }

  /** Whole curves. */
  async full(keys, view) {
    return decodeAnswer(await fetchJson(this.address("curves", keys, view)));
  }

  /** What is newer than a cursor. */
  async since(keys, view, cursor) {
    return decodeAnswer(await fetchJson(this.address("curves", keys, view, { since: cursor })));
  }

  /** Whole curves inside a window of the axis. */
  async inside(keys, view, [from, to]) {
    return decodeAnswer(await fetchJson(this.address("curves", keys, view, { from, to })));
  }

  /** The file with exactly what a chart shows. */
  file(ending, key, view) {
    const window = view.range ? { from: view.range[0], to: view.range[1] } : {};
    return this.address("csv", [key], view, window).replace(".csv?", `.${ending}?`);
  }

  address(which, keys, view, more = {}) {
    const params = new URLSearchParams();
    this.runs.forEach((run) => params.append("run", run));
    keys.forEach((key) => params.append("key", key));
    params.set("x", view.axis);
    params.set("budget", this.budget);
    params.set("smooth", view.weight);
    params.set("superseded", view.ghosts ? 1 : 0);
    for (const [name, given] of Object.entries(more)) {
      params.set(name, given);
    }
    return `${this.addresses[which]}?${params}`;
  }
}

async function fetchJson(address) {
  let answer;
  try {
    answer = await fetch(address, { headers: { Accept: "application/json" } });
  } catch {
    throw new FeedError(t("The server cannot be reached. It is tried again by itself."));
  }
  if (answer.status === 401) {
    throw new FeedError(t("You are signed out."), true);
  }
  if (!answer.ok) {
    throw new FeedError(await errorWords(answer));
  }
  return answer.json();
}

async function errorWords(answer) {
  if (answer.status === 404) {
    return t("This run is not there any more.");
  }
  try {
    const { error } = await answer.json();
    return `${error.field}: ${error.message}`;
  } catch {
    return t("The server answered with an error ({status}).", { status: answer.status });
  }
}
