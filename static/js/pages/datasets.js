/* Imports, live: the page of one import asks again at each hint, the list is fetched anew. */

import { listen, paced } from "../ui/live.js";
import { showSignedOut } from "../ui/trouble.js";

const reloadList = paced(async () => {
  const answer = await fetch(window.location.href);
  if (answer.redirected) {
    showSignedOut();
  } else if (answer.ok) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.getElementById("datasets").replaceWith(page.getElementById("datasets"));
  }
}, 1500);

listen(["datasets"], {
  import(data) {
    const own = document.getElementById("import");
    if (own?.dataset.import === data.id) {
      own.dispatchEvent(new CustomEvent("temper:import"));
    } else if (document.getElementById("datasets")) {
      reloadList();
    }
  },
  resync() {
    document.getElementById("import")?.dispatchEvent(new CustomEvent("temper:import"));
  },
});
