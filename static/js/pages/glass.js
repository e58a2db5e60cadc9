/* Steps under glass and tryouts: what shows one asks again at each hint, the list is fetched anew,
   and the choice of a model opens its form at once. */

import { listen, paced } from "../ui/live.js";
import { stateOf } from "../ui/states.js";
import { t } from "../ui/texts.js";

const reloadList = paced(async () => {
  const answer = await fetch(window.location.href);
  const place = document.getElementById("glass-steps");
  if (answer.ok && place) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    place.replaceWith(page.getElementById("glass-steps"));
  }
}, 1500);

function askAgain() {
  document.getElementById("glass")?.dispatchEvent(new CustomEvent("temper:glass"));
}

listen(["glass"], {
  glass(data) {
    const own = document.getElementById("glass");
    if (own?.dataset.glass === data.id) {
      announce(own.dataset, data.state);
      askAgain();
    } else if (document.getElementById("glass-steps")) {
      reloadList();
    }
  },
  resync: askAgain,
});

document.addEventListener("change", (event) => {
  event.target.closest("[data-submit-on-change]")?.form.requestSubmit();
});

function announce(before, state) {
  if (before.state !== state) {
    const words = { state: stateOf(state) };
    const isTryout = before.noun === "tryout";
    const text = isTryout ? t("The tryout is {state}.", words) : t("The step is {state}.", words);
    document.getElementById("announce").textContent = text;
  }
}
