/* A request of htmx that failed is said aloud on the page, never swallowed. */

const SHOWN_MS = 8000;

export function startFailures() {
  document.body.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    if (status === 403) {
      say("You may not do that, or your session has ended. Reload the page.");
    } else {
      say(`The server answered with an error (${status}). Nothing was changed on this page.`);
    }
  });
  document.body.addEventListener("htmx:sendError", () => {
    say("The server cannot be reached. It is tried again with the next change.");
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
