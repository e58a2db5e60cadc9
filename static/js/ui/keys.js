/* Keyboard shortcuts: one list, from which both the sheet and the behaviour come.
   A page adds its own by `addKeys`. Off inside text fields, and off altogether by the switch in
   the sheet (WCAG 2.1.4). Two-key shortcuts such as `g r` wait a second for the second key. */

const STORE = "temper_keys_off";
const SECOND_KEY_MS = 1000;

const shortcuts = [];
let first = "";
let timer = 0;

/** Add shortcuts: [{ keys: "g r", what: "All runs", run: () => {...} }]. */
export function addKeys(entries) {
  shortcuts.push(...entries);
  drawSheet();
}

export function startKeys() {
  const links = document.querySelectorAll(".rail-nav a");
  addKeys([
    { keys: "?", what: "This sheet", run: openSheet },
    { keys: "/", what: "Search on this page", run: focusSearch },
    ...[...links].map((link) => ({
      keys: link.querySelector("kbd").textContent.trim(),
      what: link.querySelector("span").textContent.trim(),
      run: () => link.click(),
    })),
  ]);
  document.addEventListener("keydown", onKey);
  for (const button of document.querySelectorAll("[data-keys-open]")) {
    button.addEventListener("click", openSheet);
  }
  const box = document.querySelector("[data-keys-switch]");
  box.checked = !isOff();
  box.addEventListener("change", () => {
    localStorage.setItem(STORE, box.checked ? "" : "1");
  });
}

function isOff() {
  return localStorage.getItem(STORE) === "1";
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isOff() || isTyping(event.target)) {
    return;
  }
  if (document.querySelector("dialog[open]")) {
    return;
  }
  const key = event.key;
  const pair = first ? `${first} ${key}` : "";
  const found = shortcuts.find((s) => s.keys === pair) ?? shortcuts.find((s) => s.keys === key);
  clearTimeout(timer);
  first = "";
  if (found) {
    event.preventDefault();
    found.run(event);
  } else if (shortcuts.some((s) => s.keys.startsWith(`${key} `))) {
    first = key;
    timer = setTimeout(() => (first = ""), SECOND_KEY_MS);
  }
}

function isTyping(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"))
  );
}

function openSheet() {
  document.getElementById("keys").showModal();
}

function focusSearch() {
  document.querySelector("main input[type=search]")?.focus();
}

function drawSheet() {
  const list = document.querySelector("[data-keys-list]");
  if (!list) {
    return;
  }
  list.replaceChildren(
    ...shortcuts.flatMap(({ keys, what }) => {
      const term = document.createElement("dt");
      keys.split(" ").forEach((key) => {
        const kbd = document.createElement("kbd");
        kbd.textContent = NAMES[key] ?? key;
        term.append(kbd, " ");
      });
      const words = document.createElement("dd");
      words.textContent = what;
      return [term, words];
    }),
  );
}

const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Enter: "⏎" };
