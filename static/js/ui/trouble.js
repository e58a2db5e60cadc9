/* A bar above the page when what it shows may be old: the server is away, or the session has ended.
   Hints of the live channel and failed requests of htmx bring it up; while the server is away it is
   asked every three seconds, and when it answers the bar goes and `temper:back` is sent to the body,
   which fragments wait for to ask again. */

import { t } from "./texts.js";

const PING_MS = 3000;
const WORDS = {
  away: t("The server cannot be reached. What you see may be old; it is tried again by itself."),
  "signed-out": t("You are signed out, so this page is no longer kept up to date."),
};
let shown = "";
let timer = 0;

export function startTrouble() {
  document.addEventListener("temper:live", ({ detail }) => onLive(detail.status));
  document.body.addEventListener("htmx:sendError", ping);
  document.body.addEventListener("htmx:timeout", ping);
  document.body.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) {
      show("signed-out");
    }
  });
}

/** The session has ended: say so, with the way back in. */
export function showSignedOut() {
  show("signed-out");
}

function onLive(status) {
  if (status === "signed-out") {
    show("signed-out");
  } else if (status === "offline") {
    ping();
  } else if (status === "live" && shown === "away") {
    ping();
  }
}

/* A request that failed may be one that a click has broken off: only a server that does not answer
   a question of our own is away. */
async function ping() {
  clearTimeout(timer);
  try {
    await fetch(document.querySelector("link[rel=icon]").href, { method: "HEAD", cache: "no-store" });
  } catch {
    show("away");
    timer = setTimeout(ping, PING_MS);
    return;
  }
  if (shown === "away") {
    hide();
    document.body.dispatchEvent(new CustomEvent("temper:back"));
  }
}

function show(kind) {
  if (shown === kind || shown === "signed-out") {
    return;
  }
  shown = kind;
  document.documentElement.dataset.trouble = kind;
  const bar = document.getElementById("trouble");
  bar.replaceChildren(words(WORDS[kind]));
  if (kind === "signed-out") {
    const link = document.createElement("a");
    link.className = "button button-small";
    link.href = location.pathname + location.search;
    link.textContent = t("Sign in again");
    bar.append(link);
  }
  bar.hidden = false;
}

function hide() {
  shown = "";
  delete document.documentElement.dataset.trouble;
  document.getElementById("trouble").hidden = true;
}

function words(text) {
  const place = document.createElement("span");
  place.textContent = text;
  return place;
}
