/* Loads the vendored Plotly once, so that it obeys the site's content security policy.
   Plotly looks for its own <style> elements before it makes them; an element with the expected id
   and the class "no-inline-styles" tells it that the rules come from a style sheet (charts.css has
   the few that our charts need). Without them the browser would report violations. */

const STYLE_IDS = [
  "plotly.js-style-global",
  "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53", // maps, which we do not draw
];
const ADDRESS = new URL("../../vendor/plotly/plotly-basic.min.js", import.meta.url);

let loading = null;

/** The Plotly object; the 1.2 MB are fetched on the first call. */
export function loadPlotly() {
  loading ??= load().catch((error) => {
    loading = null; // the next call tries again
    throw error;
  });
  return loading;
}

async function load() {
  for (const id of STYLE_IDS) {
    const stand = document.createElement("template");
    stand.id = id;
    stand.className = "no-inline-styles";
    document.head.append(stand);
  }
  await import(ADDRESS.href);
  return window.Plotly;
}
