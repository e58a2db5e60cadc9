/* The table of runs, live: rows that changed are fetched one by one, new runs with the whole list. */

import { listen, paced, refresh } from "../ui/live.js";
import { addKeys } from "../ui/keys.js";
import { stateOf } from "../ui/states.js";
import { t } from "../ui/texts.js";

const ROW_EVERY_MS = 1000;
const rowTimers = new Map();
const refreshList = paced(() => refresh("#runs-table", here()), 1000);

listen(["runs"], {
  state: onHint,
  metric: onHint,
  resync: () => refreshList(),
});

function onHint(data) {
  const row = document.getElementById(`run-${data.number}`);
  if (!row) {
    if (data.state && document.getElementById("runs-table").dataset.first) {
      refreshList();
    }
    return;
  }
  if (data.state === "deleted") {
    row.remove();
    return;
  }
  if (!rowTimers.has(data.number)) {
    rowTimers.set(
      data.number,
      paced(() => refreshRow(data.number), ROW_EVERY_MS),
    );
  }
  rowTimers.get(data.number)();
}

async function refreshRow(number) {
  const row = document.getElementById(`run-${number}`);
  if (row && !row.contains(document.activeElement)) {
    const before = row.dataset.state;
    await refresh(`#run-${number}`, `${number}/row/`);
    const after = document.getElementById(`run-${number}`)?.dataset.state;
    if (after && after !== before) {
      const words = t("Run {number} is {state}.", { number, state: stateOf(after) });
      document.getElementById("announce").textContent = words;
    }
  }
}

function here() {
  return window.location.pathname + window.location.search;
}

addKeys([
  { keys: "j", what: t("Next run in the table"), run: () => move(1) },
  { keys: "k", what: t("Previous run in the table"), run: () => move(-1) },
]);

/* j and k move the focus from run to run; Enter on the focused link opens it. */
function move(by) {
  const links = [...document.querySelectorAll("#runs-body .cell-name a")];
  const now = links.indexOf(document.activeElement);
  links[Math.min(links.length - 1, Math.max(0, now + by))]?.focus();
}
