/* The pill #live in the page's frame: whether what is shown is up to date. */

import { t, tp } from "../ui/texts.js";

const WORDS = {
  live: [t("live"), t("Changes appear here by themselves.")],
  "catching-up": [t("catching up"), t("Connecting to the server.")],
  offline: [
    t("offline"),
    t("The server cannot be reached. It is tried again every two seconds."),
  ],
  "signed-out": [
    tp("live channel", "signed out"),
    t("Your session has ended. Reload the page to sign in."),
  ],
};

/** Show a status: live, catching-up, offline or signed-out; the page hears `temper:live`. */
export function drawPill(status) {
  document.dispatchEvent(new CustomEvent("temper:live", { detail: { status } }));
  const pill = document.getElementById("live");
  if (!pill) {
    return;
  }
  const [word, title] = WORDS[status];
  pill.dataset.live = status === "signed-out" ? "offline" : status;
  pill.title = title;
  const place = pill.querySelector(".live-word") ?? pill;
  if (place.textContent !== word) {
    place.textContent = word;
  }
}
