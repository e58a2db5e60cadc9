/* The workers page asks again when a worker comes, goes or changes what it does, and every 10 s. */

import { listen, paced } from "../ui/live.js";

const ask = paced(() => {
  document.getElementById("workers")?.dispatchEvent(new CustomEvent("temper:workers"));
}, 1000);

listen(["workers", "runs"], { worker: ask, state: ask, resync: ask });
