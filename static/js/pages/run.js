/* The head of a run's page: the phase bar moves with each hint, the rest is fetched when it changed. */

import { listen, paced, refresh } from "../ui/live.js";
import { duration } from "../ui/times.js";
import { say } from "../ui/failures.js";
import { stateOf } from "../ui/states.js";
import { t } from "../ui/texts.js";

const page = document.getElementById("run");
const run = page.dataset;
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const UNITS = {
  rollouts: t("rollouts"),
  "micro-batches": t("micro-batches"),
  checkpoints: t("checkpoints"),
};
const refreshHead = paced(() => refresh("#run-live", run.liveUrl), 500);
const refreshChanged = paced(() => refresh("#run-changed", run.changedUrl), 500);
const refreshEvaluations = paced(() => refresh("#run-evals", run.evaluationsUrl), 500);

listen([`run:${run.run}`], {
  phase: showPhase,
  state(data) {
    announce(data.state);
    refreshHead();
    refreshChanged();
  },
  checkpoint: refreshHead,
  notice: refreshHead,
  comment: showComments,
  metric: showStep,
  evaluation() {
    refreshEvaluations();
    refreshHead();
  },
  resync() {
    refreshHead();
    refreshEvaluations();
    refreshChanged();
  },
});
document.body.addEventListener("temper:say", (event) => say(event.detail.text));

function showPhase(phase) {
  const panel = document.getElementById("run-phase");
  const sentence = panel?.querySelector("[data-phase-sentence]");
  const bar = panel?.querySelector("[data-phase-bar]");
  if (!sentence || !bar) {
    refreshHead();
    return;
  }
  const words = JSON.parse(panel.dataset.words);
  const text = withStep(phase, withCount(phase, words[phase.phase] ?? phase.phase)).trim();
  sentence.textContent = text[0].toUpperCase() + text.slice(1);
  if (phase.total) {
    bar.max = phase.total;
    bar.value = phase.done;
  } else {
    bar.removeAttribute("value");
  }
  panel.querySelector("[data-phase-speed]").textContent = phase.tokens_per_s
    ? t("{n} tokens/s", { n: number.format(phase.tokens_per_s) })
    : "";
  panel.querySelector("[data-phase-eta]").textContent =
    phase.eta_s === null || phase.eta_s === undefined
      ? ""
      : t("{span} left", { span: duration(phase.eta_s) });
  if (phase.run_step !== undefined) {
    showStep({ step: phase.run_step });
  }
}

/* The same words as webapp.runs.overview.phase_view. */
function withCount({ done, total, unit }, doing) {
  const [some, all] = [number.format(done), number.format(total)];
  const words = { doing, done: some, total: all, unit: UNITS[unit] ?? unit ?? "" };
  return total ? t("{doing} {done} of {total} {unit}", words) : doing;
}

function withStep({ step }, doing) {
  return step ? t("Step {step}: {doing}", { step: number.format(step), doing }) : doing;
}

/* A new step changes the stage bars too, which the server draws. */
function showStep({ step }) {
  const place = document.querySelector("[data-run-step]");
  const text = number.format(step);
  if (place && place.textContent !== text) {
    place.textContent = text;
    refreshHead();
  }
}

function showComments({ count }) {
  const place = document.querySelector("[data-comment-count]");
  place.textContent = number.format(count);
  place.hidden = count === 0;
}

function announce(state) {
  const words = t("Run {number} is {state}.", { number: run.number, state: stateOf(state) });
  document.getElementById("announce").textContent = words;
}
