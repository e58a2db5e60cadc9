"""A run's page and its tabs, in every state that a run can be in."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.stories import Story, interval, launch
from training_core.contract.events import PairedDifference
from training_core.contract.presets import TINY_COPY
from training_core.contract.yaml_text import parse_yaml
from webapp.accounts.models import User
from webapp.runs.console import TAIL_BYTES
from webapp.runs.models import Run
from webapp.runs.overview import describe, phase_view, stage_views
from webapp.runs.services import launch_run, stop_run

TABS = ("detail", "rollouts", "config", "logs", "checkpoints")


def page(browser: Client, run: Run, tab: str = "detail", query: str = "") -> str:
    answer = browser.get(reverse(f"runs:{tab}", args=[run.number]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def queued(owner: User) -> Run:
    return launch(owner)


def running(owner: User) -> Run:
    story = Story(launch(owner)).start()
    story.evaluate(0, "start", "base model", 0.04)
    story.step(61).rollouts(61).checkpoint(61, best=True)
    return story.phase(62, "rollout", 18, 32, tokens_per_s=212.4).say("hello\n").run


def failed(owner: User) -> Run:
    story = Story(launch(owner)).start()
    return story.step(3, "warm-up").finish(
        "failed", "out_of_memory", "The trainer ran out of memory.", "Lower the batch."
    )


def succeeded(owner: User) -> Run:
    story = Story(launch(owner)).start()
    story.evaluate(0, "start", "base model", 0.04)
    story.evaluate(60, "stage_end", "after warm-up", 0.31, [(0, "base model", 0.27)])
    story.evaluate(80, "interval", "step 80", 0.4, [(0, "base model", 0.36)])
    story.step(120)
    story.evaluate(120, "final", "final", 0.7, [(0, "base model", 0.66)])
    return story.finish("succeeded", "done", "The program is done: 120 steps.")


@pytest.mark.parametrize("make", [queued, running, failed, succeeded], ids=lambda f: f.__name__)
@pytest.mark.parametrize("tab", TABS)
def test_every_tab_in_every_state(
    make: Callable[[User], Run], tab: str, browser: Client, ada: User
) -> None:
    run = make(ada)
    html = page(browser, run, tab)
    assert f"#{run.number}" in html
    assert f'data-state="{run.state}"' in html
    assert html.count('aria-current="page"') == 2  # the rail and the tab


def test_the_phase_is_a_sentence(browser: Client, ada: User) -> None:
    html = page(browser, running(ada))
    assert "Step 62: generating 18 of 32 rollouts" in html
    assert "212.4 tokens/s" in html
    assert 'value="18"' in html


def test_phases_in_words() -> None:
    assert phase_view(None) is None
    loading = phase_view({"phase": "load", "step": 0, "done": 0, "total": 0})
    assert loading is not None
    assert loading.sentence == "Loading the model"
    new = phase_view({"phase": "dream", "step": 3, "done": 1, "total": 0})
    assert new is not None
    assert new.sentence == "Step 3: dream"


def test_the_curves_are_mounted_with_their_addresses(browser: Client, ada: User) -> None:
    run = running(ada)
    html = page(browser, run)
    assert f'id="curves" data-run="{run.pk}"' in html
    assert 'data-curves-url="/api/runs/curves"' in html
    assert f'data-keys-url="/api/runs/{run.pk}/keys"' in html


def test_stages_on_the_timeline(ada: User) -> None:
    spec = launch(ada).read_spec()
    assert [(s.name, s.done) for s in stage_views(spec, 70)] == [("warm-up", 60), ("rl", 10)]
    assert [s.is_current for s in stage_views(spec, 70)] == [False, True]
    assert all(s.is_done for s in stage_views(spec, 120))


def test_a_failure_says_why_and_what_next(browser: Client, ada: User) -> None:
    html = page(browser, failed(ada))
    assert "The trainer ran out of memory." in html
    assert "Lower the batch." in html
    assert "no checkpoint was saved" in html
    assert "Resume" in html


def test_evaluations_are_told_with_intervals_and_differences(browser: Client, ada: User) -> None:
    html = page(browser, succeeded(ada))
    assert html.count('class="eval-card panel"') == 3
    assert "70.0 %" in html
    assert "+66.0 points against base model" in html
    assert "All 4 evaluations" in html
    assert "After warm-up" in html
    assert html.index("correctness</dt>") < html.index("format</dt>")  # the spec's order


@pytest.mark.parametrize(
    ("value", "verdict", "tone"),
    [(0.2, "better", "ok"), (-0.2, "worse", "bad"), (0.05, "no difference shown", "calm")],
)
def test_a_difference_claims_no_more_than_its_interval(
    value: float, verdict: str, tone: str
) -> None:
    change = PairedDifference(
        against_step=0, against_label="base model", difference=interval(value, 0.08)
    )
    told = describe(change)
    assert (told.verdict, told.tone) == (verdict, tone)


def test_a_second_attempt_is_told(browser: Client, ada: User) -> None:
    story = Story(launch(ada)).start()
    story.step(61).checkpoint(61)
    story.finish("failed", "crash", "It crashed.")
    browser.post(reverse("runs:control", args=[story.run.number, "resume"]))
    story.run.refresh_from_db()
    again = Story(story.run).start(start_step=61)
    assert "Attempt 2, from step 61" in page(browser, again.run)


def test_fragments_for_live_pages(browser: Client, ada: User) -> None:
    run = running(ada)
    for name, start in (
        ("phase", '<div id="run-live"'),
        ("evaluations", '<section id="run-evals"'),
    ):
        html = browser.get(reverse(f"runs:{name}", args=[run.number])).content.decode()
        assert html.strip().startswith(start)


COMMANDS = {
    "stop": "stopping",
    "pause": "pausing",
    "evaluate": "running",
    "checkpoint": "running",
}


@pytest.mark.parametrize(("command", "state"), COMMANDS.items())
def test_steering_a_running_run(command: str, state: str, browser: Client, ada: User) -> None:
    run = running(ada)
    asked = browser.get(reverse("runs:control", args=[run.number, command]))
    assert "<html" in asked.content.decode()
    answer = browser.post(
        reverse("runs:control", args=[run.number, command]), headers={"HX-Request": "true"}
    )
    assert answer.status_code == 200
    assert json.loads(answer.headers["HX-Trigger"])["temper:say"]["text"]
    run.refresh_from_db()
    assert run.state == state
    assert run.control_requests.count() == 1


def test_the_question_names_the_consequence(browser: Client, ada: User) -> None:
    run = running(ada)
    html = browser.get(
        reverse("runs:control", args=[run.number, "stop"]), headers={"HX-Request": "true"}
    ).content.decode()
    assert "<html" not in html
    assert "now step 61 of 120" in html


def test_what_a_run_cannot_do_is_said(browser: Client, ada: User) -> None:
    run = succeeded(ada)
    answer = browser.post(reverse("runs:control", args=[run.number, "stop"]), follow=True)
    assert "there is nothing to stop" in answer.content.decode()
    assert browser.get(reverse("runs:control", args=[run.number, "explode"])).status_code == 404


def test_delete_wants_the_name(browser: Client, ada: User) -> None:
    run = succeeded(ada)
    address = reverse("runs:control", args=[run.number, "delete"])
    wrong = browser.post(address, {"name": "something else"})
    assert wrong.status_code == 422
    assert "The name does not match." in wrong.content.decode()
    assert Run.objects.filter(pk=run.pk).exists()
    assert browser.post(address, {"name": run.name}).headers["Location"] == "/runs/"
    assert not Run.objects.filter(pk=run.pk).exists()


def test_somebody_elses_run_is_seen_and_not_steered(browser: Client, ada: User, bob: User) -> None:
    run = running(bob)
    html = page(browser, run)
    assert "only they or an admin of Main steer it" in html
    assert "Stop</a>" not in html
    for method in (browser.get, browser.post):
        answer = method(reverse("runs:control", args=[run.number, "stop"]))
        assert answer.status_code == 403
    assert "belongs to bob" in answer.content.decode()
    run.refresh_from_db()
    assert run.state == "running"


def test_config_shows_the_spec_and_its_changes(browser: Client, ada: User) -> None:
    spec = TINY_COPY.spec.model_copy(update={"seed": 7})
    run = launch_run(owner=ada, spec=spec, preset=TINY_COPY.slug)
    html = page(browser, run, "config")
    assert "seed" in html
    changes = html[html.index('id="config-changes"') :]
    assert "<code>seed</code>" in changes
    assert "<code>stages" not in changes
    text = browser.get(reverse("runs:config_yaml", args=[run.number]))
    assert parse_yaml(text.content.decode())["seed"] == 7
    assert "attachment" in text.headers["Content-Disposition"]
    assert "Who did what" in html


def test_a_log_is_read_by_byte_offset(browser: Client, ada: User) -> None:
    story = Story(launch(ada)).start()
    story.say("one\n\x1b[31mtwo\x1b[0m\nunfinished")
    html = page(browser, story.run, "logs")
    assert '<span class="ansi-red">two</span>' in html
    assert "unfinished" not in html
    address = reverse("runs:log_piece", args=[story.run.number])
    offset = len("one\n\x1b[31mtwo\x1b[0m\n")
    assert json.loads(browser.get(f"{address}?offset={offset}").content)["end"] == offset
    story.say(" line <b>\n")
    piece = json.loads(browser.get(f"{address}?offset={offset}").content)
    assert piece["html"] == "unfinished line &lt;b&gt;\n"
    assert piece["end"] == piece["size"]
    beyond = json.loads(browser.get(f"{address}?offset=999999").content)
    assert beyond["start"] == 0


def test_a_long_log_shows_its_end_and_is_searched_whole(browser: Client, ada: User) -> None:
    story = Story(launch(ada)).start()
    story.say("needle at the top\n" + "".join(f"line {i}\n" for i in range(20_000)))
    html = page(browser, story.run, "logs")
    assert "needle at the top" not in html
    assert "line 19999" in html
    assert len(html) < TAIL_BYTES + 30_000
    found = page(browser, story.run, "logs", "?q=NEEDLE")
    assert "1 line with" in found
    many = page(browser, story.run, "logs", "?q=line 1")
    assert "the first 500 shown" in many
    assert "0 lines with" in page(browser, story.run, "logs", "?q=zebra")


@pytest.mark.parametrize(
    ("tab", "missing"),
    [("rollouts", "No rollouts"), ("checkpoints", "No checkpoint"), ("logs", "No output")],
)
def test_a_run_that_ended_before_it_started_promises_nothing(
    tab: str, missing: str, browser: Client, ada: User
) -> None:
    run = queued(ada)
    assert f"<h2>{missing} yet</h2>" in page(browser, run, tab)
    stop_run(run, ada)
    html = page(browser, run, tab)
    assert f"<h2>{missing}</h2>" in html
    assert "This run ended before" in html
    assert "appears here" not in html


@pytest.mark.parametrize("query", ["?attempt=9", "?attempt=x", "?offset=-1", "?offset=x"])
def test_a_log_that_is_not_there(query: str, browser: Client, ada: User) -> None:
    run = running(ada)
    assert browser.get(reverse("runs:log_piece", args=[run.number]) + query).status_code == 404


def test_checkpoints_and_what_became_of_them(browser: Client, ada: User) -> None:
    story = Story(launch(ada)).start()
    story.checkpoint(20).checkpoint(40)
    story.checkpoint(60, best=True, removed=["checkpoints/step-000020"])
    html = page(browser, story.run, "checkpoints")
    assert html.count("Restart from here") == 2
    assert "1 removed by the retention rule" in html
    assert "best" in html
    assert "12.6 MB" in html
