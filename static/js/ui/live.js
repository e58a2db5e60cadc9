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

/** Replace an element by the fragment at an address, unless somebody types in it. Focus stays on
    an element that has an id before and after. False where nothing was replaced: a server that is
    away is said by ui/trouble.js. */
export async function refresh(selector, address) {
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
