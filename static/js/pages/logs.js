/* The console, live: what follows after the last byte is fetched when the run says it printed. */

import { listen, paced } from "../ui/live.js";
import { showSignedOut } from "../ui/trouble.js";

const FETCH_EVERY_MS = 700;
const KEPT_CHARS = 2_000_000;
const log = document.getElementById("log");

if (log?.dataset.isLive) {
  const fetchMore = paced(more, FETCH_EVERY_MS);
  listen([`run:${document.getElementById("run").dataset.run}`], {
    log: fetchMore,
    state: fetchMore,
    resync: fetchMore,
  });
  scrollToEnd();
} else if (log) {
  scrollToEnd();
}

async function more() {
  const answer = await fetch(`${log.dataset.logUrl}&offset=${log.dataset.offset}`, {
    headers: { "HX-Request": "true" },
  });
  if (answer.status === 401) {
    showSignedOut();
  }
  if (!answer.ok) {
    return;
  }
  const piece = await answer.json();
  if (log.tagName !== "PRE") {
    if (piece.size) {
      window.location.reload();
    }
    return;
  }
  if (piece.end > Number(log.dataset.offset)) {
    log.dataset.offset = piece.end;
    append(piece.html);
    if (piece.end < piece.size) {
      await more();
    }
  }
}

function append(html) {
  const wasAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  log.insertAdjacentHTML("beforeend", html);
  while (log.textContent.length > KEPT_CHARS && log.childNodes.length > 1) {
    log.firstChild.remove();
  }
  if (wasAtEnd || document.querySelector("[data-follow]")?.checked) {
    scrollToEnd();
  }
}

function scrollToEnd() {
  log.scrollTop = log.scrollHeight;
}
