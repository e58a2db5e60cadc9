/* Upload with a progress bar, by the button or by dropping a file. Without it the form still works. */

import { t } from "../ui/texts.js";

const form = document.querySelector("[data-drop]");
const input = form.querySelector("input[type=file]");
const problem = document.getElementById("upload-error");
const progress = form.querySelector("[data-progress]");
const words = form.querySelector("[data-progress-words]");
const megabytes = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
let request = null;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
input.addEventListener("change", () => (problem.textContent = ""));
for (const kind of ["dragenter", "dragover"]) {
  form.addEventListener(kind, (event) => {
    event.preventDefault();
    form.classList.add("is-over");
  });
}
for (const kind of ["dragleave", "drop"]) {
  form.addEventListener(kind, () => form.classList.remove("is-over"));
}
form.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) {
    input.files = event.dataTransfer.files;
    problem.textContent = "";
    send();
  }
});

function send() {
  if (request) {
    return;
  }
  if (!input.files.length) {
    refuse(t("Choose a file."));
    return;
  }
  request = new XMLHttpRequest();
  request.open("POST", form.action);
  request.setRequestHeader("HX-Request", "true");
  request.upload.addEventListener("progress", (event) => show(event.loaded, event.total));
  request.addEventListener("load", onAnswer);
  request.addEventListener("error", () => refuse(t("The upload broke off. Try it again.")));
  progress.hidden = false;
  problem.textContent = "";
  request.send(new FormData(form));
}

function show(loaded, total) {
  progress.querySelector("progress").value = total ? (100 * loaded) / total : 0;
  words.textContent =
    loaded < total
      ? t("{done} of {total} MB", {
          done: megabytes.format(loaded / 1e6),
          total: megabytes.format(total / 1e6),
        })
      : t("Uploaded; looking into it");
}

function onAnswer() {
  let answer = {};
  try {
    answer = JSON.parse(request.responseText);
  } catch {
    /* not JSON: a proxy's page, or one of ours that is none of the expected */
  }
  if (request.status < 300 && answer.next) {
    window.location.assign(answer.next);
  } else {
    const { status } = request;
    refuse(answer.error ?? t("The server did not take the file ({status}).", { status }));
  }
}

function refuse(text) {
  request = null;
  progress.hidden = true;
  problem.textContent = text;
}
