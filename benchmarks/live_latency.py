"""How long from an event's line in the run directory to its point on the screen?

    python benchmarks/live_latency.py [--quick]

Starts the whole product, launches a tiny run from a signed-in Chromium and looks, at each animation
frame, which steps the drawn chart holds. The latency of a step is the moment of its first frame
minus the time that the trainer wrote into the event. Clock, trainer, server and browser share one
machine. `--quick` watches fewer steps and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import Page, sync_playwright

from benchmarks.stack import Stack, running_stack
from training_core.contract.presets import TINY_COPY
from training_core.contract.spec import RunSpec
from training_core.contract.stages import SftStage

METRIC = "sft/loss"
STEPS, QUICK_STEPS = 300, 80
RUN_LIMIT_S = 600
WATCH = """
(key) => {
  window.__drawn = {};
  const look = () => {
    const plot = document.querySelector(`article[data-key="${key}"] .chart-plot`);
    for (const trace of plot?.data ?? []) {
      const xs = trace.x ?? [];
      for (let i = xs.length - 1; i >= 0; i -= 1) {
        if (window.__drawn[xs[i]] !== undefined) { break; }
        window.__drawn[xs[i]] = Date.now() / 1000;
      }
    }
    requestAnimationFrame(look);
  };
  look();
}
"""


def watched_spec(steps: int) -> RunSpec:
    """A run of many quick steps and nothing else."""
    base = TINY_COPY.spec
    sft = next(stage for stage in base.stages if isinstance(stage, SftStage))
    return base.model_copy(
        update={
            "name": "live latency",
            "stages": (sft.model_copy(update={"steps": steps}),),
            "evaluation": base.evaluation.model_copy(
                update={"at_start": False, "stage_end": False, "interval_steps": 0}
            ),
            "checkpoint": base.checkpoint.model_copy(update={"interval_steps": 1000}),
            "resources": base.resources.model_copy(update={"threads": 1}),
        }
    )


def watch(stack: Stack, steps: int) -> list[float]:
    """Latencies in seconds, one for each step that was drawn while the run went on."""
    # Playwright's loop lives in this thread, and Django would refuse to query beside it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox"] if os.getuid() == 0 else [],
        )
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(stack.origin + stack.sign_in_path)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/runs/")
        run = _launch(watched_spec(steps))
        page.goto(f"{stack.origin}/runs/{run.number}/")
        page.locator(f'article[data-key="{METRIC}"]').wait_for(timeout=120_000)
        page.locator(f'article[data-key="{METRIC}"]').scroll_into_view_if_needed()
        page.evaluate(WATCH, METRIC)
        started = time.time()
        _wait(run, page)
        drawn: dict[str, float] = page.evaluate("window.__drawn")
        browser.close()
    written = _written(run.run_dir.events_file(1))
    return sorted(
        seen - written[int(step)]
        for step, seen in drawn.items()
        if int(step) in written and written[int(step)] > started
    )


def _launch(spec: RunSpec) -> Any:
    """As the launch page does."""
    from webapp.accounts.services import ensure_owner  # noqa: PLC0415 - after django.setup()
    from webapp.runs.services import launch_run  # noqa: PLC0415

    return launch_run(owner=ensure_owner(), spec=spec)


def _wait(run: Any, page: Page) -> None:
    """Until the run has ended and its last point had time to be drawn."""
    deadline = time.monotonic() + RUN_LIMIT_S
    while time.monotonic() < deadline:
        run.refresh_from_db()
        if run.state in {"succeeded", "failed"}:
            page.wait_for_timeout(5000)
            return
        page.wait_for_timeout(500)
    raise SystemExit(f"the run is still {run.state}")


def _written(events: Path) -> dict[int, float]:
    """Step to the time of its metrics event."""
    parsed = (json.loads(line) for line in events.read_bytes().splitlines())
    return {event["step"]: event["t"] for event in parsed if event["kind"] == "metrics"}


def main() -> None:
    """Measure, print, and end with the RESULT line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_STEPS} steps")
    options = parser.parse_args()
    steps = QUICK_STEPS if options.quick else STEPS
    with running_stack() as stack:
        latencies = watch(stack, steps)
    if len(latencies) < steps // 4:
        raise SystemExit(f"only {len(latencies)} of {steps} steps were seen live")
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    print(f"{'points':>8}{'p50':>8}{'p95':>8}{'max':>8}  seconds from event to pixel")
    print(f"{len(latencies):>8}{cuts[49]:>8.2f}{cuts[94]:>8.2f}{latencies[-1]:>8.2f}")
    result = {
        "quick": options.quick,
        "points": len(latencies),
        "p50_s": round(cuts[49], 3),
        "p95_s": round(cuts[94], 3),
        "max_s": round(latencies[-1], 3),
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
