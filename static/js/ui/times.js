/* Relative times that stay true while a page is open: every <time datetime> without data-fixed. */

import { t } from "./texts.js";

const EVERY_MS = 15000;
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

export function startTimes() {
  setInterval(() => {
    if (!document.hidden) {
      refreshTimes(document);
    }
  }, EVERY_MS);
}

export function refreshTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-fixed])")) {
    element.textContent = ago(new Date(element.getAttribute("datetime")), new Date());
  }
}

/** The same words as webapp.ui.wording.format_ago. */
export function ago(moment, now) {
  const seconds = (now - moment) / 1000;
  const size = Math.abs(seconds);
  if (size < 5) {
    return t("just now");
  }
  const span =
    size < MINUTE
      ? t("{n} s", { n: Math.round(size) })
      : size < HOUR
        ? t("{n} min", { n: Math.round(size / MINUTE) })
        : size < 2 * DAY
          ? t("{n} h", { n: Math.round(size / HOUR) })
          : size < 60 * DAY
            ? t("{n} d", { n: Math.round(size / DAY) })
            : size < 730 * DAY
              ? t("{n} months", { n: Math.round(size / (30.44 * DAY)) })
              : t("{n} years", { n: Math.round(size / (365.25 * DAY)) });
  return seconds >= 0 ? t("{span} ago", { span }) : t("in {span}", { span });
}

/** The same words as webapp.ui.wording.format_duration. */
export function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) {
    return "–";
  }
  if (seconds < 9.95) {
    return t("{n} s", { n: seconds.toFixed(1) });
  }
  const whole = Math.round(seconds);
  if (whole < MINUTE) {
    return t("{n} s", { n: whole });
  }
  if (whole < HOUR) {
    const s = String(whole % 60).padStart(2, "0");
    return t("{m} min {s} s", { m: Math.floor(whole / 60), s });
  }
  if (whole < 2 * DAY) {
    const m = String(Math.floor((whole % HOUR) / 60)).padStart(2, "0");
    return t("{h} h {m} min", { h: Math.floor(whole / HOUR), m });
  }
  const h = Math.floor((whole % DAY) / HOUR);
  return t("{d} d {h} h", { d: Math.floor(whole / DAY), h });
}
