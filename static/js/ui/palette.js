/* The command palette: Ctrl+K or the button in the rail opens a field that finds anything.
   The server searches (webapp/search) and answers with a list of options; here they are chosen with
   arrows and Enter, after the combobox pattern: the focus stays in the field, aria-activedescendant
   names the option. Without scripts the button is a link to a page that does the same. */

import { addKeys, EVERYWHERE, isMac, openSheet } from "./keys.js";
import { readRecent, rememberPath } from "./recent.js";
import { t, tn } from "./texts.js";
import { cycleTheme } from "./theme.js";

const SETTLE_MS = 120;
const RETRY_MS = 2000;
const DEEDS = { theme: cycleTheme, keys: openSheet };

export function startPalette() {
  const dialog = document.getElementById("palette");
  if (dialog) {
    rememberPath(location.pathname);
    new Palette(dialog);
  }
}

class Palette {
  constructor(dialog) {
    this.dialog = dialog;
    this.field = dialog.querySelector("input");
    this.body = dialog.querySelector("[data-palette-body]");
    this.status = dialog.querySelector("[data-palette-status]");
    this.field.addEventListener("input", () => this.#askSoon());
    dialog.addEventListener("keydown", (event) => this.#onKey(event));
    dialog.addEventListener("click", (event) => this.#onClick(event));
    dialog.addEventListener("pointermove", (event) => this.#onPointer(event));
    dialog.addEventListener("close", () => this.#onClose());
    document.addEventListener("click", (event) => this.#onOpener(event));
    addKeys([{ keys: "Mod+k", what: t("Find anything"), run: () => this.toggle() }], EVERYWHERE);
    for (const place of document.querySelectorAll("[data-palette-keys]")) {
      place.textContent = isMac() ? "⌘ K" : "Ctrl K";
    }
  }

  /** Open it, or close it when it is open. Another dialog keeps its place. */
  toggle() {
    if (this.dialog.open) {
      this.dialog.close();
    } else if (!document.querySelector("dialog[open]")) {
      this.field.value = "";
      this.dialog.showModal();
      this.field.focus();
      this.#ask();
    }
  }

  #onOpener(event) {
    const opener = event.target.closest?.("[data-palette-open]");
    if (opener && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      this.toggle();
    }
  }

  #onClose() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.field.blur(); // keys belong to the page at once, not from the next frame on
  }

  #askSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#ask(), SETTLE_MS);
  }

  async #ask() {
    clearTimeout(this.timer);
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.body.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(this.#address(), {
        headers: { "HX-Request": "true" },
        signal: request.signal,
      });
      if (answer.redirected || answer.status === 401) {
        const address = location.pathname + location.search;
        this.#say(t("You are signed out."), t("Sign in again"), address);
      } else if (answer.ok) {
        this.#show(await answer.text());
      } else {
        const { status } = answer;
        this.#say(t("The search failed ({status}). It is tried again by itself.", { status }));
        this.#askAgain();
      }
    } catch {
      if (!request.signal.aborted) {
        this.#say(t("The server cannot be reached. It is tried again by itself."));
        this.#askAgain();
      }
    }
  }

  #askAgain() {
    this.timer = setTimeout(() => this.dialog.open && this.#ask(), RETRY_MS);
  }

  #address() {
    const params = new URLSearchParams({ q: this.field.value, here: location.pathname });
    readRecent().forEach((path) => params.append("recent", path));
    return `${this.dialog.dataset.url}?${params}`;
  }

  #show(html) {
    this.body.removeAttribute("aria-busy");
    this.body.innerHTML = html;
    const options = this.#options();
    this.field.setAttribute("aria-expanded", String(options.length > 0));
    this.#choose(options[0]);
    const count = options.length;
    this.status.textContent = count ? tn("{n} found", "{n} found", count) : t("Nothing found");
  }

  /** Say what went wrong in the place of the results. */
  #say(words, action, address) {
    const box = document.createElement("div");
    box.className = "state state-error";
    const text = document.createElement("p");
    text.textContent = words;
    box.append(text);
    if (action) {
      const link = document.createElement("a");
      link.className = "button button-primary";
      link.href = address;
      link.textContent = action;
      box.append(link);
    }
    this.body.removeAttribute("aria-busy");
    this.body.replaceChildren(box);
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
    this.status.textContent = words;
  }

  #options() {
    return [...this.body.querySelectorAll("[role=option]")];
  }

  #choose(option) {
    this.body.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    if (!option) {
      this.field.removeAttribute("aria-activedescendant");
      return;
    }
    option.setAttribute("aria-selected", "true");
    this.field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  #onKey(event) {
    if (event.isComposing) {
      return;
    }
    const options = this.#options();
    const now = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (by && options.length) {
      event.preventDefault();
      const next = now + by;
      const isOneStep = Math.abs(by) === 1;
      const edge = Math.min(options.length - 1, Math.max(0, next));
      this.#choose(options[isOneStep ? (next + options.length) % options.length : edge]);
    } else if (event.key === "Enter" && event.target === this.field && options[now]) {
      event.preventDefault();
      this.#open(options[now], event.ctrlKey || event.metaKey);
    }
  }

  #open(option, inNewTab) {
    if (inNewTab && option.href) {
      window.open(option.href, "_blank", "noopener");
    } else {
      option.click();
    }
  }

  /* Links lead on by themselves; the palette only gets out of the way. */
  #onClick(event) {
    const option = event.target.closest("[role=option]");
    if (event.target === this.dialog) {
      this.dialog.close();
    } else if (option && !event.ctrlKey && !event.metaKey) {
      this.dialog.close();
      DEEDS[option.dataset.deed]?.();
    }
  }

  #onPointer(event) {
    const option = event.target.closest("[role=option]");
    if (option && option.getAttribute("aria-selected") !== "true") {
      this.#choose(option);
    }
  }
}
