/* Exports, live: the page of one export and the list of all ask again at each hint. */

import { listen, paced } from "../ui/live.js";

function tell(id) {
  document.getElementById(id)?.dispatchEvent(new CustomEvent("temper:export"));
}

const reloadList = paced(() => tell("exports"), 1000);

listen(["models"], {
  export(data) {
    const own = document.getElementById("export");
    if (own?.dataset.export === data.id) {
      tell("export");
    }
    reloadList();
  },
  resync() {
    tell("export");
    reloadList();
  },
});
