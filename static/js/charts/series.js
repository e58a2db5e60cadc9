/* Curves as the server sends them, decoded and kept up to date. Pure: no page, no network.
   An answer either replaces a curve (mode "full") or adds points behind it (mode "append"); answers
   that are older than what is shown are dropped, so a slow one never turns a chart back. */

/** A decoded answer: { cursor, x, smooth, curves: Map(id -> curve), metrics }. */
export function decodeAnswer(answer) {
  const arrays = new Map();
  const array = (place) => {
    if (!arrays.has(place)) {
      arrays.set(place, decodeArray(answer.arrays[place]));
    }
    return arrays.get(place);
  };
  const line = (places) =>
    places && { x: array(places.x), y: array(places.y), step: array(places.step ?? places.x) };
  const curves = new Map();
  for (const curve of answer.curves) {
    curves.set(curveId(curve.run, curve.key), {
      run: curve.run,
      key: curve.key,
      mode: curve.mode,
      total: curve.n_total,
      exact: curve.exact,
      bad: curve.n_bad,
      hasAxis: curve.has_axis,
      line: line(curve.line),
      smooth: line(curve.smooth),
      band: curve.band && {
        x: array(curve.band.x),
        lo: array(curve.band.lo),
        hi: array(curve.band.hi),
      },
      ghosts: curve.superseded.map((ghost) => ({
        attempt: ghost.attempt,
        line: line(ghost.line),
      })),
    });
  }
  return { cursor: answer.cursor, x: answer.x, curves, metrics: answer.metrics };
}

/** Name of a curve in maps. */
export function curveId(run, key) {
  return `${run}\n${key}`;
}

/** float64, little-endian, in base64. */
export function decodeArray(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Float64Array(bytes.buffer);
}

/** Whether a cursor tells of anything that another does not: per run, versions only grow. */
export function isOlder(cursor, than) {
  if (!than || !cursor) {
    return false;
  }
  const known = than.split(".").map(Number);
  return cursor.split(".").some((version, i) => Number(version) < known[i]);
}

/** Bring `known` (id -> curve) up to date; the ids that changed. Curves are never changed in place:
    a chart that compares arrays by identity sees what is new. */
export function mergeCurves(known, answer) {
  const changed = [];
  for (const [id, news] of answer.curves) {
    const old = known.get(id);
    if (news.mode === "full" || !old) {
      known.set(id, { ...news, mode: "full" });
    } else if (news.total > 0) {
      known.set(id, appendCurve(old, news));
    } else {
      continue;
    }
    changed.push(id);
  }
  return changed;
}

function appendCurve(old, news) {
  return {
    ...old,
    total: old.total + news.total,
    bad: old.bad + news.bad,
    hasAxis: news.hasAxis,
    line: joinLines(old.line, news.line),
    smooth: old.smooth && news.smooth ? joinLines(old.smooth, news.smooth) : old.smooth,
  };
}

function joinLines(a, b) {
  const x = join(a.x, b.x);
  const step = a.step === a.x && b.step === b.x ? x : join(a.step, b.step);
  return { x, y: join(a.y, b.y), step };
}

function join(a, b) {
  const out = new Float64Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

/** Whether so many points came behind a thinned curve that it should be thinned anew. */
export function hasOutgrown(curve, budget) {
  return curve.line.x.length > 2 * budget;
}

/** The part of a line inside a window, with one neighbour on each side. */
export function windowOf(line, range) {
  if (!line || !range) {
    return line;
  }
  const from = Math.max(0, firstAtLeast(line.x, range[0]) - 1);
  const to = Math.min(line.x.length, firstAbove(line.x, range[1]) + 1);
  const part = (array) => array.subarray(from, to);
  const x = part(line.x);
  return { x, y: part(line.y), step: line.step === line.x ? x : part(line.step) };
}

/** A line with a gap where an attempt went on after a pause; on the clock's axis only. */
export function breakLine(line, marks) {
  const places = (marks?.attempts ?? [])
    .map(({ step }) => line?.step.findIndex((s) => s > step) ?? -1)
    .filter((i) => i > 0);
  if (places.length === 0) {
    return line;
  }
  const cut = (array, filler) => {
    const out = [];
    array.forEach((v, i) => out.push(...(places.includes(i) ? [filler(i), v] : [v])));
    return Float64Array.from(out);
  };
  const nothing = () => NaN;
  const x = cut(line.x, (i) => line.x[i - 1]);
  return { x, y: cut(line.y, nothing), step: cut(line.step, nothing) };
}

/** How many points of a line lie inside a window. */
export function countInside(line, range) {
  return range ? firstAbove(line.x, range[1]) - firstAtLeast(line.x, range[0]) : line.x.length;
}

/** Index of the first entry that is at least `value`; the array's length when there is none. */
export function firstAtLeast(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function firstAbove(sorted, value) {
  const at = firstAtLeast(sorted, value);
  let end = at;
  while (end < sorted.length && sorted[end] <= value) {
    end += 1;
  }
  return end;
}

/** Index of the entry nearest to a value; -1 in an empty array. */
export function nearest(sorted, value) {
  const right = firstAtLeast(sorted, value);
  if (right === 0) {
    return sorted.length ? 0 : -1;
  }
  const isRight = right < sorted.length && sorted[right] - value < value - sorted[right - 1];
  return isRight ? right : right - 1;
}

/** Where a step lies on the axis of a line: between its points along a straight line. */
export function placeOfStep(line, step) {
  if (!line || line.x.length === 0) {
    return null;
  }
  if (line.step === line.x) {
    return step;
  }
  const right = firstAtLeast(line.step, step);
  if (right === 0) {
    return line.x[0];
  }
  if (right === line.step.length) {
    return line.x[right - 1];
  }
  const [a, b] = [line.step[right - 1], line.step[right]];
  const share = b > a ? (step - a) / (b - a) : 0;
  return line.x[right - 1] + share * (line.x[right] - line.x[right - 1]);
}

/** [lowest, highest] place of all curves; null without points. */
export function extentOf(curves) {
  let low = Infinity;
  let high = -Infinity;
  for (const { line } of curves) {
    if (line.x.length) {
      low = Math.min(low, line.x[0]);
      high = Math.max(high, line.x[line.x.length - 1]);
    }
  }
  return low <= high ? [low, high] : null;
}
