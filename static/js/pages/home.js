/* The home page, live: its lists are fetched again when a run, a worker or an import changes. */

import { listen, paced, refresh } from "../ui/live.js";

const again = paced(() => refresh("#home", here()), 1500);

listen(["runs", "workers", "datasets"], {
  state: again,
  metric: again,
  worker: again,
  import: again,
  resync: again,
});

function here() {
  return window.location.pathname + window.location.search;
}
