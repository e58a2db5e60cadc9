/* The rollouts tab: arrow keys walk through groups and steps; a page that reads nothing in
   particular follows a live run. */

import { listen, paced, refresh } from "../ui/live.js";
import { addKeys } from "../ui/keys.js";
import { t } from "../ui/texts.js";

const FOLLOW_EVERY_MS = 1500;

addKeys([
  { keys: "ArrowRight", what: t("Next group"), run: () => click("[data-group=next]") },
  { keys: "ArrowLeft", what: t("Previous group"), run: () => click("[data-group=prev]") },
  { keys: "]", what: t("Later step"), run: () => click("[data-step=next]") },
  { keys: "[", what: t("Earlier step"), run: () => click("[data-step=prev]") },
  { keys: "l", what: t("Latest step"), run: () => click("[data-latest]") },
]);

let hasMoved = false; // the reader, since the page last followed the run

const follow = paced(() => {
  const now = document.getElementById("rollouts");
  if (now.dataset.follow && !now.querySelector(".htmx-request")) {
    hasMoved = false;
    refresh("#rollouts", now.dataset.partUrl + window.location.search);
  }
}, FOLLOW_EVERY_MS);

listen([`run:${document.getElementById("run").dataset.run}`], {
  sample(data) {
    const now = document.getElementById("rollouts");
    if (now.dataset.follow) {
      follow();
    } else {
      markNews(data.step);
    }
  },
  resync: follow,
});

/* What follows the run by itself does not undo what the reader has asked for meanwhile. */
document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  hasMoved ||= isReaders(detail.elt);
});
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (hasMoved && detail.target.id === "rollouts" && !isReaders(detail.requestConfig.elt)) {
    detail.shouldSwap = false;
  }
});

function isReaders(element) {
  return Boolean(element?.closest("#rollouts"));
}

/* Filters act when they change; the button is for browsers without scripts. */
document.addEventListener("change", (event) => {
  event.target.closest("[data-submit-on-change]")?.requestSubmit();
});

/* Somebody is reading: nothing moves, the button says that there is more. */
function markNews(step) {
  const latest = document.querySelector("[data-latest]");
  if (latest && step) {
    latest.textContent = t("Latest: step {step}", { step });
  }
}

function click(selector) {
  document.querySelector(`#rollouts ${selector}`)?.click();
}
