/* Paths of pages that were opened lately, the newest first. Kept in this browser alone; the server
   says which of them are things that one may still see. */

const STORE = "temper_recent";
const KEPT = 12;

/** Remember that a page was opened. A tab of a run counts as the run. */
export function rememberPath(path) {
  const thing = path.match(/^\/[a-z]+\/[0-9]+\//)?.[0];
  if (!thing) {
    return;
  }
  const paths = [thing, ...readRecent().filter((known) => known !== thing)].slice(0, KEPT);
  try {
    localStorage.setItem(STORE, JSON.stringify(paths));
  } catch {
    // a browser that keeps nothing has no recent pages
  }
}

/** The paths; none when the browser keeps nothing. */
export function readRecent() {
  try {
    const paths = JSON.parse(localStorage.getItem(STORE) ?? "[]");
    return Array.isArray(paths) ? paths.filter((path) => typeof path === "string") : [];
  } catch {
    return [];
  }
}
