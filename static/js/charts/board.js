/* Keeps the charts on screen up to date: what to fetch, when, and which ones to draw again.
   Only charts that can be seen are fetched or drawn. New data come by cursor; a new choice
   fetches whole curves once. One round of requests runs at a time; one chart is drawn a frame. */

import { curveId, extentOf, hasOutgrown, isOlder, mergeCurves } from "./series.js";

const KEYS_A_REQUEST = 24;
const SETTLE_MS = 120;
const RETRY_MS = 5000;

export class Board {
  /** feed: Feed; look(chart, curves): draws; view(): the present view. */
  constructor(feed, view, look) {
    this.feed = feed;
    this.view = view;
    this.look = look;
    this.slots = new Map();
    this.onStale = () => {};
    this.drawQueue = new Set();
    this.seen = new IntersectionObserver((entries) => this.#onSeen(entries), {
      rootMargin: "200px",
    });
  }

  /** Watch a chart. */
  add(chart) {
    const slot = { chart, curves: new Map(), cursor: "", choice: "", window: null, isSeen: false };
    this.slots.set(chart.key, slot);
    this.seen.observe(chart.element);
  }

  /** Fetch what is missing or new, soon. */
  refresh(delay = SETTLE_MS) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#round(), delay);
  }

  /** Draw the charts on screen again from what is there. */
  redraw() {
    for (const slot of this.slots.values()) {
      this.#draw(slot);
    }
  }

  /** [first, last] place of everything that was fetched, so that all charts share one axis. */
  extent() {
    const choice = choiceOf(this.view());
    const current = [...this.slots.values()].filter((slot) => slot.choice === choice);
    return extentOf(current.flatMap((slot) => [...slot.curves.values()]));
  }

  /** The charts on screen. */
  visible() {
    return [...this.slots.values()].filter((slot) => slot.isSeen).map((slot) => slot.chart);
  }

  #onSeen(entries) {
    for (const { target, isIntersecting } of entries) {
      const slot = [...this.slots.values()].find(({ chart }) => chart.element === target);
      slot.isSeen = isIntersecting;
      if (isIntersecting) {
        this.#draw(slot);
      }
    }
    this.refresh();
  }

  async #round() {
    if (this.isBusy) {
      this.isAskedAgain = true;
      return;
    }
    this.isBusy = true;
    const view = this.view();
    try {
      for (const job of this.#jobs(view)) {
        await this.#run(job, view);
      }
      this.onStale(null);
      this.#drawOnNewExtent();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.isBusy = false;
      if (this.isAskedAgain) {
        this.isAskedAgain = false;
        this.refresh(0);
      }
    }
  }

  #drawOnNewExtent() {
    const extent = String(this.extent());
    if (extent !== this.drawnExtent) {
      this.drawnExtent = extent;
      this.redraw();
    }
  }

  /** Requests of this round: whole curves, news by cursor, windows of thinned curves. */
  #jobs(view) {
    const jobs = [];
    const add = (kind, argument, slots) => {
      for (let i = 0; i < slots.length; i += KEYS_A_REQUEST) {
        jobs.push({ kind, argument, slots: slots.slice(i, i + KEYS_A_REQUEST) });
      }
    };
    const seen = [...this.slots.values()].filter((slot) => slot.isSeen);
    const choice = choiceOf(view);
    add(
      "full",
      null,
      seen.filter((slot) => slot.choice !== choice || !slot.cursor),
    );
    const loaded = seen.filter((slot) => slot.choice === choice && slot.cursor);
    for (const cursor of new Set(loaded.map((slot) => slot.cursor))) {
      add(
        "since",
        cursor,
        loaded.filter((slot) => slot.cursor === cursor),
      );
    }
    if (view.range) {
      add(
        "inside",
        view.range,
        seen.filter((slot) => needsWindow(slot, view)),
      );
    }
    return jobs;
  }

  async #run({ kind, argument, slots }, view) {
    const keys = slots.map((slot) => slot.chart.key);
    const answer =
      kind === "full"
        ? await this.feed.full(keys, view)
        : await this.feed[kind](keys, view, argument);
    for (const slot of slots) {
      if (kind === "inside") {
        slot.window = {
          range: argument,
          choice: choiceOf(view),
          curves: ofKey(answer.curves, slot.chart.key),
        };
        this.#draw(slot);
      } else {
        this.#take(slot, kind, answer, choiceOf(view));
      }
    }
    if (kind === "full" && view.range && slots.some((slot) => needsWindow(slot, view))) {
      this.isAskedAgain = true;
    }
  }

  #take(slot, kind, answer, choice) {
    if (slot.choice === choice && isOlder(answer.cursor, slot.cursor)) {
      return;
    }
    if (kind === "full") {
      slot.curves = new Map();
      slot.window = slot.window?.choice === choice ? slot.window : null;
    }
    const news = { ...answer, curves: ofKey(answer.curves, slot.chart.key) };
    const changed = mergeCurves(slot.curves, news);
    const outgrown = [...slot.curves.values()].some((c) => hasOutgrown(c, this.feed.budget));
    slot.cursor = outgrown ? "" : answer.cursor;
    slot.choice = choice;
    if (changed.length || kind === "full") {
      slot.window = kind === "since" ? freshWindow(slot) : slot.window;
      this.#draw(slot);
    }
    this.isAskedAgain ||= outgrown;
  }

  #fail(error) {
    this.onStale(error);
    for (const slot of this.slots.values()) {
      if (slot.isSeen) {
        slot.chart.fail(error, () => this.refresh(0));
      }
    }
    if (!error.isSignedOut) {
      this.refresh(RETRY_MS);
    }
  }

  #draw(slot) {
    if (this.drawQueue.size === 0) {
      requestAnimationFrame(() => this.#drawNext());
    }
    this.drawQueue.add(slot);
  }

  async #drawNext() {
    const [slot] = this.drawQueue;
    const isReady = slot.isSeen && (slot.cursor || slot.choice);
    if (isReady) {
      await this.look(slot.chart, this.#shown(slot));
    }
    this.drawQueue.delete(slot);
    if (this.drawQueue.size) {
      requestAnimationFrame(() => this.#drawNext());
    }
  }

  /** The curves to draw: those of the window where they are finer than the whole. */
  #shown(slot) {
    const { range } = this.view();
    const window = slot.window;
    const fits = range && window && window.range[0] === range[0] && window.range[1] === range[1];
    return [...(fits ? window.curves : slot.curves).values()];
  }
}

/** The choices that need other data when they change. */
function choiceOf({ axis, weight, ghosts }) {
  return `${axis} ${weight} ${ghosts}`;
}

function needsWindow(slot, view) {
  const isThinned = [...slot.curves.values()].some((curve) => !curve.exact);
  const [from, to] = slot.window?.range ?? [];
  const isThere =
    from === view.range[0] && to === view.range[1] && slot.window.choice === choiceOf(view);
  return isThinned && !isThere;
}

/** The window, unless new points have come into it. */
function freshWindow(slot) {
  const window = slot.window;
  const reaches = [...slot.curves.values()].some(({ line }) => {
    return window && line.x.length && line.x[line.x.length - 1] <= window.range[1];
  });
  return reaches ? null : window;
}

function ofKey(curves, key) {
  const found = new Map();
  for (const curve of curves.values()) {
    if (curve.key === key) {
      found.set(curveId(curve.run, key), curve);
    }
  }
  return found;
}
