/* The comments of a run, live: the list is fetched anew when somebody said something. */

import { listen, paced, refresh } from "../ui/live.js";

const list = document.getElementById("comments");
const reload = paced(() => refresh("#comments", window.location.pathname), 500);

listen([`run:${list.dataset.run}`], { comment: reload, resync: reload });
