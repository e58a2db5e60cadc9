from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.webapp.runs_control.story import Story, tell_six_steps
from training_core.contract.events import ControlApplied, Notice
from webapp.accounts.models import User
from webapp.control.batches import Batch, read_batch
from webapp.control.claims import claim_run
from webapp.control.record import record_events
from webapp.evaluation.models import EvalRun
from webapp.metrics import services as metrics
from webapp.metrics.models import LiveEvent
from webapp.metrics.read import read_series
from webapp.rollouts.models import RolloutGroup
from webapp.runs import services
from webapp.runs.models import Attempt, Checkpoint, ControlRequest, Run, RunNotice

Ingest = Callable[[Story, Run], bool]


def next_attempt(run: Run, alice: User, at_step: int) -> Story:
    """The worker died; the next attempt starts from a checkpoint."""
    Run.objects.filter(pk=run.pk).update(state="queued", lease_owner="")
    claim = claim_run(run.pk, "train@two", "boot-2")
    assert claim is not None
    story = Story(claim.run_dir, claim.attempt)
    story.started(at_step)
    return story


def test_events_become_rows(run: Run, story: Story, ingest: Ingest) -> None:
    tell_six_steps(story)
    assert ingest(story, run) is False
    run.refresh_from_db()
    attempt = Attempt.objects.get(run=run)
    assert read_series(run.pk, "reward") == [(s, s / 10) for s in range(1, 7)]
    assert RolloutGroup.objects.filter(run=run).count() == 12
    assert EvalRun.objects.get(run=run).results[0]["pass_at_1"]["value"] == 0.5
    assert RunNotice.objects.get(run=run).code == "spike"
    assert (run.state, run.step, run.stage) == ("running", 6, "rl")
    assert run.latest["reward"] == pytest.approx(0.6)
    assert (run.phase["step"], run.phase["done"]) == (6, 4)
    assert run.eta_s == pytest.approx(6 * run.pace["step_s"])
    assert (attempt.start_step, attempt.last_step) == (0, 6)
    assert attempt.ingest_offset == story.path.stat().st_size
    assert attempt.facts["versions"] == {"torch": "2.13.0"}


def test_checkpoints_follow_retention_and_best(run: Run, story: Story, ingest: Ingest) -> None:
    tell_six_steps(story)
    ingest(story, run)
    rows = {c.step: c for c in Checkpoint.objects.filter(run=run)}
    assert rows[2].removed_at is not None
    assert rows[4].removed_at is None
    assert [rows[2].is_best, rows[4].is_best] == [False, True]
    assert [c.step for c in Checkpoint.objects.filter(run=run).on_disk()] == [4]


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_any_split_into_batches_gives_the_same_rows_once(run: Run, story: Story, size: int) -> None:
    """Each batch is told twice, and overlaps the one before it."""
    tell_six_steps(story)
    events = read_batch(story.path, 0).events
    for start in range(0, len(events), size):
        batch = Batch(events[max(0, start - 2) : start + size], (), 10 * start)
        record_events(run.pk, 1, batch)
        record_events(run.pk, 1, batch)
    record_events(run.pk, 1, Batch(events[:4], (), 0))
    assert read_series(run.pk, "reward") == [(s, s / 10) for s in range(1, 7)]
    assert Run.objects.get(pk=run.pk).step == 6
    assert RolloutGroup.objects.filter(run=run).count() == 12
    assert EvalRun.objects.filter(run=run).count() == 1
    assert [n.code for n in RunNotice.objects.filter(run=run)] == ["spike"]
    assert Attempt.objects.get(run=run).last_seq == len(events)


def test_a_new_attempt_supersedes_what_lies_beyond_its_start(
    run: Run, story: Story, ingest: Ingest, alice: User
) -> None:
    tell_six_steps(story)
    ingest(story, run)
    second = next_attempt(run, alice, at_step=4)
    second.metrics(5, reward=50.0)
    ingest(second, run)
    run.refresh_from_db()
    assert read_series(run.pk, "reward") == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4), (5, 50.0)]
    live = RolloutGroup.objects.filter(run=run, superseded=False)
    assert sorted({group.step for group in live}) == [1, 2, 3, 4]
    assert not EvalRun.objects.filter(run=run).current().exists()
    assert run.step == 5


def test_a_checkpoint_that_is_gone_is_told(
    run: Run, story: Story, ingest: Ingest, alice: User
) -> None:
    """Somebody removed it while the run was paused: the curves went back without a word."""
    tell_six_steps(story)
    ingest(story, run)
    ingest(next_attempt(run, alice, at_step=0), run)
    assert not Checkpoint.objects.filter(run=run).on_disk().exists()
    told = RunNotice.objects.get(run=run, attempt=2)
    assert told.code == "checkpoint_gone"
    assert told.message == (
        "step-000004 is gone from the run's directory; the run begins again from step 0."
    )


def test_a_checkpoint_that_is_there_is_not_told_as_gone(
    run: Run, story: Story, ingest: Ingest, alice: User
) -> None:
    tell_six_steps(story)
    ingest(story, run)
    ingest(next_attempt(run, alice, at_step=4), run)
    assert not RunNotice.objects.filter(run=run, attempt=2).exists()


def test_a_damaged_checkpoint_is_told_once(
    run: Run, story: Story, ingest: Ingest, alice: User
) -> None:
    tell_six_steps(story)
    ingest(story, run)
    Run.objects.filter(pk=run.pk).update(state="queued", lease_owner="")
    claim = claim_run(run.pk, "train@two", "boot-2")
    assert claim is not None
    second = Story(claim.run_dir, claim.attempt)
    message = "step-000004 is not whole (it has no manifest.json); the run begins again."
    second.add(Notice, step=0, level="warning", code="checkpoint_damaged", message=message)
    second.started(0)
    ingest(second, run)
    assert [n.code for n in RunNotice.objects.filter(run=run, attempt=2)] == ["checkpoint_damaged"]


def test_headline_values_go_back_with_the_start(
    run: Run, story: Story, ingest: Ingest, alice: User
) -> None:
    tell_six_steps(story)
    ingest(story, run)
    second = next_attempt(run, alice, at_step=4)
    ingest(second, run)
    run.refresh_from_db()
    assert run.latest == {"reward": pytest.approx(0.4)}
    assert run.step == 4


def test_late_events_of_an_old_attempt_are_kept_but_change_nothing_current(
    run: Run, story: Story, ingest: Ingest, alice: User
) -> None:
    """A worker that was cut off delivers after the next attempt has begun."""
    story.started()
    story.metrics(1)
    ingest(story, run)
    second = next_attempt(run, alice, at_step=1)
    second.metrics(2, reward=22.0)
    ingest(second, run)
    for step in (2, 3):
        story.metrics(step)
    story.phase(4, done=1)
    ingest(story, run)
    run.refresh_from_db()
    assert read_series(run.pk, "reward") == [(1, 0.1), (2, 22.0)]
    assert (run.step, run.latest["reward"]) == (2, 22.0)
    assert Attempt.objects.get(run=run, number=1).last_step == 3


def test_nan_and_infinity_survive(run: Run, story: Story, ingest: Ingest) -> None:
    story.started()
    story.metrics(1, reward=float("nan"), grad_norm=float("inf"), entropy=float("-inf"))
    ingest(story, run)
    run.refresh_from_db()
    assert run.latest == {"reward": "NaN", "grad_norm": "Infinity", "entropy": "-Infinity"}
    assert str(read_series(run.pk, "reward")) == "[(1, nan)]"


def test_an_evaluation_without_scores_is_stored(run: Run, story: Story, ingest: Ingest) -> None:
    story.started()
    story.evaluation(0, passed=float("nan"))
    ingest(story, run)
    assert EvalRun.objects.get(run=run).results[0]["pass_at_1"]["value"] == "NaN"


def test_a_line_that_is_no_event_is_passed_over_with_a_notice(
    run: Run, story: Story, ingest: Ingest
) -> None:
    story.started()
    with story.path.open("ab") as file:
        file.write(b'{"kind": "horoscope", "seq": 2}\n')
    story.metrics(1)
    ingest(story, run)
    ingest(story, run)
    notice = RunNotice.objects.get(run=run)
    assert notice.code == "bad_event"
    assert "horoscope" in notice.message
    assert read_series(run.pk, "reward") == [(1, 0.1)]


def test_a_torn_last_line_waits_for_its_end(run: Run, story: Story, ingest: Ingest) -> None:
    story.started()
    story.metrics(1)
    whole = story.path.read_bytes()
    story.path.write_bytes(whole[:-20])
    ingest(story, run)
    assert read_series(run.pk, "reward") == []
    assert not RunNotice.objects.filter(run=run).exists()
    story.path.write_bytes(whole)
    ingest(story, run)
    assert read_series(run.pk, "reward") == [(1, 0.1)]


def test_missing_events_are_told(run: Run, story: Story, ingest: Ingest) -> None:
    story.started()
    story.seq += 3
    story.metrics(1)
    ingest(story, run)
    assert "3 events before number 5 are missing" in RunNotice.objects.get(run=run).message


def test_an_event_that_cannot_be_stored_hides_nothing_else(
    run: Run, story: Story, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.started()
    for step in (1, 2, 3):
        story.metrics(step)
    store = metrics.append_points

    def faulty(run_id: object, attempt: int, points: list[metrics.MetricPoint]) -> None:
        if any(point.step == 2 for point in points):
            raise ValueError("two is bad luck")
        store(run_id, attempt, points)  # type: ignore[arg-type]

    monkeypatch.setattr(metrics, "append_points", faulty)
    ingest(story, run)
    assert read_series(run.pk, "reward") == [(1, 0.1), (3, pytest.approx(0.3))]
    notice = RunNotice.objects.get(run=run)
    assert (notice.code, notice.seq) == ("event_left_out", 3)
    assert "two is bad luck" in notice.message


@pytest.mark.parametrize("damage", ["missing", "cut", "outside"])
def test_rollouts_that_cannot_be_read_are_told_and_curves_go_on(
    run: Run, story: Story, ingest: Ingest, damage: str
) -> None:
    story.started()
    event = story.rollouts(1)
    story.metrics(1)
    path = story.run_dir.root / event.file  # type: ignore[union-attr]
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-30])
    else:
        text = story.path.read_text().replace("rollouts/a1", "../../a1")
        story.path.write_text(text)
    ingest(story, run)
    assert RunNotice.objects.get(run=run).code == "rollouts_unreadable"
    assert read_series(run.pk, "reward") == [(1, 0.1)]


def test_texts_that_postgresql_refuses_are_made_visible(
    run: Run, story: Story, ingest: Ingest
) -> None:
    story.started()
    story.notice(1, message="a\0b")
    story.finished(1, outcome="failed", cause="exception", message="x\0y")
    ingest(story, run)
    assert RunNotice.objects.get(run=run).message == "a␀b"
    assert Attempt.objects.get(run=run).message == "x␀y"


def test_a_wish_is_acknowledged(run: Run, story: Story, ingest: Ingest, alice: User) -> None:
    wish = services.checkpoint_now(run, alice)
    story.started()
    for control_id in (str(wish.pk), "sigterm"):
        story.add(
            ControlApplied, step=1, control_id=control_id, command="checkpoint_now", result="Saved."
        )
    ingest(story, run)
    wish = ControlRequest.objects.get(pk=wish.pk)
    assert wish.result == "Saved."
    assert wish.applied_at is not None


def test_one_hint_of_a_kind_for_each_batch(run: Run, story: Story, ingest: Ingest) -> None:
    tell_six_steps(story)
    LiveEvent.objects.all().delete()
    ingest(story, run)
    kinds = list(LiveEvent.objects.filter(topic=f"run:{run.pk}").values_list("kind", flat=True))
    assert sorted(kinds) == sorted(
        ["state", "metric", "phase", "sample", "checkpoint", "evaluation", "notice"]
    )
    phase = LiveEvent.objects.get(topic=f"run:{run.pk}", kind="phase").data
    assert (phase["step"], phase["done"], phase["total"], phase["unit"]) == (6, 4, 8, "rollouts")


def test_the_last_word_of_an_attempt_is_kept(run: Run, story: Story, ingest: Ingest) -> None:
    story.started()
    story.finished(0, outcome="failed", cause="bad_model", message="No EOS.", advice="Choose.")
    assert ingest(story, run) is True
    attempt = Attempt.objects.get(run=run)
    assert (attempt.outcome, attempt.cause, attempt.advice) == ("failed", "bad_model", "Choose.")
    run.refresh_from_db()
    assert run.state == "running"  # until the process is gone
