/* The page's colours, read from the variables of tokens.css, so that charts follow the theme. */

const SERIES = 8;

/** Colours and font for figures, as they are now. */
export function readTheme(element = document.documentElement) {
  const style = getComputedStyle(element);
  const colour = (name) => toHex(style.getPropertyValue(name).trim());
  return {
    text: colour("--text"),
    muted: colour("--muted"),
    line: colour("--line"),
    grid: colour("--line"),
    surface: colour("--surface"),
    bad: colour("--bad"),
    warn: colour("--warn"),
    font: style.getPropertyValue("--font").trim() || "sans-serif",
    series: Array.from({ length: SERIES }, (_, i) => colour(`--series-${i + 1}`)),
  };
}

/** Call back when the theme changes, by the page's switch or by the system. */
export function onThemeChange(callback) {
  document.addEventListener("temper:theme", callback);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
}

/** Light colours whatever the page shows: for pictures that go into papers. */
export function readLightTheme() {
  const root = document.documentElement;
  const before = root.dataset.theme;
  root.dataset.theme = "light";
  const theme = readTheme(root);
  if (before === undefined) {
    delete root.dataset.theme;
  } else {
    root.dataset.theme = before;
  }
  return theme;
}

/** #rgb and #rrggbb as #rrggbb; grey for anything else. */
function toHex(text) {
  if (/^#[0-9a-f]{6}$/i.test(text)) {
    return text;
  }
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(text);
  return short
    ? `#${short
        .slice(1)
        .map((c) => c + c)
        .join("")}`
    : "#808080";
}
