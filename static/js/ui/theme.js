/* Theme: the system's, light or dark. Kept in a cookie, so that the server renders it at once. */

import { t } from "./texts.js";

const ORDER = ["", "light", "dark"];
const YEAR_S = 31536000;
const WORDS = { "": t("system"), light: t("light"), dark: t("dark") };

export function startTheme() {
  for (const button of document.querySelectorAll("[data-theme-toggle]")) {
    button.addEventListener("click", cycleTheme);
  }
}

/** The next of the system's, light and dark. */
export function cycleTheme() {
  const now = document.documentElement.dataset.theme ?? "";
  setTheme(ORDER[(ORDER.indexOf(now) + 1) % ORDER.length]);
}

export function setTheme(theme) {
  if (theme) {
    document.documentElement.dataset.theme = theme;
  } else {
    delete document.documentElement.dataset.theme;
  }
  document.cookie = `temper_theme=${theme}; path=/; max-age=${theme ? YEAR_S : 0}; samesite=lax`;
  for (const word of document.querySelectorAll("[data-theme-word]")) {
    word.textContent = WORDS[theme];
  }
  document.dispatchEvent(new CustomEvent("temper:theme", { detail: { theme } }));
}
