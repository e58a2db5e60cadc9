/* The head of a run's page: the phase bar moves with each hint, the rest is fetched when it changed. */

import { listen, paced, refresh } from "../ui/live.js";
import { duration } from "../ui/times.js";
import { say } from "../ui/failures.js";

const page = document.getElementById("run");
const run = page.dataset;
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
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
  const count = phase.total
    ? ` ${number.format(phase.done)} of ${number.format(phase.total)} ${phase.unit ?? ""}`
    : "";
  const lead = phase.step ? `Step ${number.format(phase.step)}: ` : "";
  const text = `${lead}${words[phase.phase] ?? phase.phase}${count}`.trim();
  sentence.textContent = text[0].toUpperCase() + text.slice(1);
  if (phase.total) {
    bar.max = phase.total;
    bar.value = phase.done;
  } else {
    bar.removeAttribute("value");
  }
  panel.querySelector("[data-phase-speed]").textContent = phase.tokens_per_s
    ? `${number.format(phase.tokens_per_s)} tokens/s`
    : "";
  panel.querySelector("[data-phase-eta]").textContent =
    phase.eta_s === null || phase.eta_s === undefined ? "" : `${duration(phase.eta_s)} left`;
  if (phase.run_step !== undefined) {
    showStep({ step: phase.run_step });
  }
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
  document.getElementById("announce").textContent = `Run ${run.number} is ${state}.`;
}
