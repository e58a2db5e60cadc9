/* Hints of the server, by kind: `listen(["run:ID"], { phase(data) {...}, resync() {...} })`.
   A thin layer over live/stream.js, which keeps one connection for all pages of a browser.
   Handlers that fetch are wrapped in `paced`, so that a burst of hints costs one request. */

import { subscribe } from "../live/stream.js";

/** Call the handler that is named like the hint's kind; `resync` when hints were missed. */
export function listen(topics, handlers) {
  return subscribe(topics, (hint) => handlers[hint.kind]?.(hint.data ?? {}, hint.topic));
}

/** A function that runs at most once in `every` ms, and always once after the last call. */
export function paced(run, every) {
  let timer = 0;
  let last = 0;
  return (...values) => {
    clearTimeout(timer);
    const wait = Math.max(0, last + every - Date.now());
    timer = setTimeout(() => {
      last = Date.now();
      run(...values);
    }, wait);
  };
}

const waiting = new Map();
let turn = Promise.resolve();

/** Replace an element by the fragment at an address, unless somebody types in it. Focus stays on
    an element that has an id before and after. False where nothing was replaced: a server that is
    away is said by ui/trouble.js. One after the other: htmx keeps only the last of what is asked
    while it is busy. */
export function refresh(selector, address) {
  const key = `${selector} ${address}`;
  if (!waiting.has(key)) {
    turn = turn.then(() => {
      waiting.delete(key);
      return replace(selector, address);
    });
    waiting.set(key, turn);
  }
  return waiting.get(key);
}

async function replace(selector, address) {
  const place = document.querySelector(selector);
  if (!place || place.contains(document.activeElement?.closest("input, textarea, select") ?? null)) {
    return false;
  }
  try {
    await window.htmx.ajax("GET", address, {
      target: selector,
      select: selector,
      swap: "outerHTML",
    });
  } catch {
    return false;
  }
  return true;
}
