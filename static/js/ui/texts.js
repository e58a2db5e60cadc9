/* Texts in the visitor's language. English is in the code; other languages come as a script before. */

export function t(text, values = {}) {
  return fill(globalThis.django?.gettext?.(text) ?? text, values);
}

/** A text whose English has several meanings: `about` says which one is meant. */
export function tp(about, text, values = {}) {
  return fill(globalThis.django?.pgettext?.(about, text) ?? text, values);
}

export function tn(one, many, count, values = {}) {
  const found = globalThis.django?.ngettext?.(one, many, count) ?? (count === 1 ? one : many);
  return fill(found, { n: count, ...values });
}

function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
