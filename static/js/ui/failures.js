/* A request of htmx that failed is said aloud on the page, never swallowed. That the server is away
   or the session has ended is said by trouble.js. */

import { t } from "./texts.js";

const SHOWN_MS = 8000;

export function startFailures() {
  document.body.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    if (status === 403) {
      say(t("You may not do that. Nothing was changed."));
    } else if (status === 404) {
      say(t("It is not there any more. Reload the page."));
    } else if (status !== 401) {
      say(
        t("The server answered with an error ({status}). Nothing was changed on this page.", {
          status,
        }),
      );
    }
  });
}

/** Show a short message at the foot of the page. */
export function say(text) {
  let place = document.getElementById("toast");
  if (!place) {
    place = document.createElement("div");
    place.id = "toast";
    place.className = "toast";
    place.setAttribute("role", "alert");
    document.body.append(place);
  }
  place.textContent = text;
  place.hidden = false;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (place.hidden = true), SHOWN_MS);
}
