/* Keyboard shortcuts: one list, from which both the sheet and the behaviour come.
   A page adds its own by `addKeys`. Off inside text fields, and off altogether by the switch in
   the sheet (WCAG 2.1.4). Two-key shortcuts such as `g r` wait a second for the second key.
   `Mod+k` is Ctrl+K, or ⌘K on a Mac: it works in text fields too, and cannot be switched off. */

import { t } from "./texts.js";

const STORE = "temper_keys_off";
const SECOND_KEY_MS = 1000;
const PAGE = t("This page");

/** The group of shortcuts that all pages have. */
export const EVERYWHERE = t("Everywhere");

const NATIVE = [
  { keys: "Tab", what: t("To the next link, button or field; Shift+Tab goes back") },
  { keys: "Enter", what: t("Open or press what is focused") },
  { keys: "Escape", what: t("Close a dialog or a menu") },
];

const shortcuts = [];
let first = "";
let timer = 0;

/** Add shortcuts: [{ keys: "g r", what: "All runs", run: () => {...} }]. */
export function addKeys(entries, group = PAGE) {
  shortcuts.push(...entries.map((entry) => ({ ...entry, group })));
  drawSheet();
}

/** Whether the modifier of shortcuts is ⌘. */
export function isMac() {
  return /Mac|iPhone|iPad/.test(navigator.userAgentData?.platform ?? navigator.platform ?? "");
}

export function startKeys() {
  const links = document.querySelectorAll(".rail-nav a");
  const hasSearch = document.querySelector("main input[type=search]") !== null;
  if (hasSearch) {
    addKeys([{ keys: "/", what: t("Search on this page"), run: focusSearch }]);
  }
  addKeys(
    [
      { keys: "?", what: t("This sheet"), run: openSheet },
      ...[...links].map((link) => ({
        keys: link.querySelector("kbd").textContent.trim(),
        what: link.querySelector("span").textContent.trim(),
        run: () => link.click(),
      })),
      ...NATIVE,
    ],
    EVERYWHERE,
  );
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
  if (event.ctrlKey || event.metaKey) {
    onChord(event);
    return;
  }
  if (event.altKey || isOff() || isTyping(event.target) || document.querySelector("dialog[open]")) {
    return;
  }
  const key = event.key;
  const pair = first ? `${first} ${key}` : "";
  const found = find(pair) ?? find(key);
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

function onChord(event) {
  const found = find(`Mod+${event.key.toLowerCase()}`);
  if (found && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    found.run(event);
  }
}

/* Keys without a deed are the browser's own; the sheet lists them. */
function find(keys) {
  return shortcuts.find((s) => s.keys === keys && s.run);
}

function isTyping(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"))
  );
}

/** Show the sheet of all shortcuts. */
export function openSheet() {
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
  const groups = [PAGE, EVERYWHERE].filter((name) => shortcuts.some((s) => s.group === name));
  list.replaceChildren(...groups.map(drawGroup));
}

function drawGroup(name) {
  const box = document.createElement("section");
  const title = document.createElement("h3");
  title.textContent = name;
  const list = document.createElement("dl");
  list.className = "keys-list";
  for (const { keys, what } of shortcuts.filter((s) => s.group === name)) {
    const term = document.createElement("dt");
    keys.split(/[ +]/).forEach((key) => {
      const kbd = document.createElement("kbd");
      kbd.textContent = nameOf(key);
      term.append(kbd, " ");
    });
    const words = document.createElement("dd");
    words.textContent = what;
    list.append(term, words);
  }
  box.append(title, list);
  return box;
}

function nameOf(key) {
  return key === "Mod" ? (isMac() ? "⌘" : "Ctrl") : (NAMES[key] ?? key);
}

const NAMES = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Enter: "⏎",
  Escape: "Esc",
};
