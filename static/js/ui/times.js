/* Relative times that stay true while a page is open: every <time datetime> without data-fixed. */

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
    return "just now";
  }
  const text =
    size < MINUTE
      ? `${Math.round(size)} s`
      : size < HOUR
        ? `${Math.round(size / MINUTE)} min`
        : size < 2 * DAY
          ? `${Math.round(size / HOUR)} h`
          : size < 60 * DAY
            ? `${Math.round(size / DAY)} d`
            : size < 730 * DAY
              ? `${Math.round(size / (30.44 * DAY))} months`
              : `${Math.round(size / (365.25 * DAY))} years`;
  return seconds >= 0 ? `${text} ago` : `in ${text}`;
}

/** The same words as webapp.ui.wording.format_duration. */
export function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) {
    return "–";
  }
  if (seconds < 9.95) {
    return `${seconds.toFixed(1)} s`;
  }
  const whole = Math.round(seconds);
  if (whole < MINUTE) {
    return `${whole} s`;
  }
  if (whole < HOUR) {
    return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  }
  if (whole < 2 * DAY) {
    const minutes = Math.floor((whole % HOUR) / 60);
    return `${Math.floor(whole / HOUR)} h ${String(minutes).padStart(2, "0")} min`;
  }
  return `${Math.floor(whole / DAY)} d ${Math.floor((whole % DAY) / HOUR)} h`;
}
