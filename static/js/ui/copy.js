/* Copy buttons: data-copy holds the text, or data-copy-from the selector of what to copy. */

import { say } from "./failures.js";
import { t } from "./texts.js";

const SHOWN_MS = 1500;

export function startCopy() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-copy], [data-copy-from]");
    if (!button) {
      return;
    }
    const source = button.dataset.copyFrom && document.querySelector(button.dataset.copyFrom);
    copyText(source ? (source.value ?? source.textContent) : button.dataset.copy, button);
  });
}

/** Copy a text and say so on the button. */
export async function copyText(text, button) {
  let words = t("Copied");
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    words = t("Copying is not allowed");
  }
  const label = button.querySelector("span");
  if (!label) {
    say(words);
    return;
  }
  const before = label.textContent;
  label.textContent = words;
  document.getElementById("announce").textContent = words;
  setTimeout(() => (label.textContent = before), SHOWN_MS);
}
