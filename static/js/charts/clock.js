/* Plotly draws moments in UTC; people read them in their own zone. Pure.
   `toClock` moves a moment so that Plotly shows the local clock; `fromClock` undoes it. Other axes
   pass through unchanged. */

const MINUTE_MS = 60_000;

/** A place on the axis as Plotly gets it. */
export function toClock(x, axis) {
  return axis === "wall" ? x - new Date(x).getTimezoneOffset() * MINUTE_MS : x;
}

/** A place on the axis from what Plotly reports: a number, or a date as text. */
export function fromClock(shown, axis) {
  if (axis !== "wall") {
    return Number(shown);
  }
  const drawn = typeof shown === "number" ? shown : Date.parse(`${shown.replace(" ", "T")}Z`);
  const guess = drawn + new Date(drawn).getTimezoneOffset() * MINUTE_MS;
  return drawn + new Date(guess).getTimezoneOffset() * MINUTE_MS;
}
