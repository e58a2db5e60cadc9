/* The comments of a run, live: the list is fetched anew when somebody said something. */

import { listen, paced, refresh } from "../ui/live.js";

const list = document.getElementById("comments");
const { pathname, search } = window.location;
const reload = paced(() => refresh("#comments", pathname + search), 500);

listen([`run:${list.dataset.run}`], { comment: reload, resync: reload });
