/* Shares of weights among their neighbours, kept live while a weight is typed.
   The same rule as webapp.ui.templatetags.temper_form.weight_share: by size, 0 for no number. */

export function updateShares(list) {
  const shares = [...list.querySelectorAll("[data-share-for]")].filter(
    (share) => share.closest("[data-weights]") === list,
  );
  const weights = shares.map((share) => weightOf(share.dataset.shareFor));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  shares.forEach((share, index) => {
    share.textContent = total ? `${Math.round((100 * weights[index]) / total)} %` : "–";
  });
}

function weightOf(path) {
  const weight = Number(document.getElementById(`field-${path}`)?.value);
  return Number.isFinite(weight) ? Math.abs(weight) : 0;
}
