"""The card of what changed: honest choice, honest words, and proposals that rest on facts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from django.test import Client

from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.members import become
from tests.webapp.stories import Story, launch
from training_core.contract.events import Interval, PairedDifference
from webapp.accounts.models import Role, User
from webapp.rollouts.models import Rollout
from webapp.runs.changed import choose, items_needed, make_statement, read_change
from webapp.runs.models import Run
from webapp.runs.next_actions import Offers, next_actions
from webapp.runs.overview import eval_cards
from webapp.runs.services import stop_run

pytestmark = pytest.mark.django_db


def difference(value: float, low: float, high: float, n: int = 100) -> PairedDifference:
    it = Interval(value=value, low=low, high=high, n=n)
    return PairedDifference(against_step=60, against_label="after warm-up", difference=it)


def told(owner: User, gain: float = 0.3, **changes: Any) -> Story:
    """A run that was evaluated before, between and after, and not ended yet."""
    story = Story(launch(owner, **changes)).start()
    story.rollouts(0, "evaluate", groups=12, size=1, stage="warm-up")
    story.evaluate(0, "start", "base model", 0.0)
    story.step(60, "warm-up").evaluate(60, "stage_end", "after warm-up", 0.3, [(0, "base", 0.3)])
    compared = [(0, "base model", 0.3 + gain), (60, "after warm-up", gain)]
    story.step(120).checkpoint(120, best=True)
    story.rollouts(120, "evaluate", groups=12, size=1)
    return story.evaluate(120, "final", "final", 0.3 + gain, compared)


def ended(owner: User, gain: float = 0.3) -> Run:
    return told(owner, gain).finish("succeeded", "done", "The program is done.")


def proposals(run: Run, steering: bool = True, launching: bool = True) -> dict[str, str]:
    cards = eval_cards(run)
    found = next_actions(run, cards, read_change(run, cards), Offers(steering, launching))
    return {action.title: action.why for action in found}


def test_a_gain_is_claimed_with_its_interval() -> None:
    said = make_statement(difference(0.107, 0.081, 0.136), "RL")
    assert said == ("RL added +10.7 points [8.1, 13.6].", "ok")


def test_a_loss_is_said_as_plainly() -> None:
    said = make_statement(difference(-0.04, -0.07, -0.01), "RL")
    assert said == ("RL took away 4.0 points [−7.0, −1.0].", "bad")


def test_where_the_interval_holds_0_nothing_is_claimed() -> None:
    words, tone = make_statement(difference(0.02, -0.03, 0.07), "RL")
    assert tone == "calm"
    assert "nothing can be claimed" in words
    assert "about 1,300 held-out items" in words
    assert "this run has 100" in words


def test_the_items_needed_follow_the_formula() -> None:
    # spread 0.05, s = 0.05 / 1.96; 100 ((1.96 + 0.84) s / 0.02)^2 = 100 * 3.571^2 = 1275.5
    assert items_needed(difference(0.02, -0.03, 0.07).difference) == 1300
    # twice the effect needs a quarter of the items: 318.9
    assert items_needed(difference(0.04, -0.01, 0.09).difference) == 320
    assert items_needed(difference(0.0, -0.05, 0.05).difference) is None
    assert items_needed(difference(0.0, 0.0, 0.0).difference) is None
    assert items_needed(difference(1e-12, -0.05, 0.05).difference) is None


def test_an_interval_that_is_not_finite_claims_nothing() -> None:
    words, tone = make_statement(difference(math.nan, math.nan, math.nan), "RL")
    assert (words, tone) == ("RL: the items cannot be compared.", "calm")


def test_the_first_of_each_kind_is_shown_and_missing_kinds_give_way() -> None:
    kinds = {("d", str(i)): kind for i, kind in enumerate(["gained"] * 3 + ["unchanged"] * 2)}
    assert choose(kinds) == [("d", "0"), ("d", "1"), ("d", "3")]
    kinds["d", "9"] = "lost"
    assert choose(kinds) == [("d", "0"), ("d", "9"), ("d", "3")]
    assert choose({}) == []
    assert choose({("d", "0"): "lost"}) == [("d", "0")]


def test_the_card_compares_the_same_prompts(ada: User) -> None:
    run = ended(ada)
    change = read_change(run)
    assert change is not None
    assert sum(change.counts.values()) == 12
    assert change.headline == "Solves 57.6 of 96 held-out items; the base model solved 0."
    assert change.statements[0].words == "RL added +30.0 points [22.0, 38.0]."
    assert change.statements[1].words.startswith("All training together added +60.0 points")
    assert len(change.pairs) == 3
    for pair in change.pairs:
        assert pair.before.group.prompt_id == pair.after.group.prompt_id
        assert (pair.before.group.step, pair.after.group.step) == (0, 120)
        gained = bool(pair.after.passed) - bool(pair.before.passed)
        assert pair.kind == {1: "gained", -1: "lost", 0: "unchanged"}[gained]


def test_the_page_shows_answers_side_by_side_only_when_it_is_over(
    ada: User, browser: Client
) -> None:
    story = told(ada)
    assert "What changed" not in browser.get("/runs/1/").content.decode()
    story.finish("succeeded", "done", "The program is done.")
    html = browser.get("/runs/1/").content.decode()
    assert "What changed" in html
    assert html.count('class="answer-side"') == 6
    assert "Shown: the first of each kind" in html
    assert "RL added" in browser.get("/runs/1/changed/").content.decode()


def test_one_evaluation_or_none_says_that_nothing_can_be_compared(
    ada: User, browser: Client
) -> None:
    story = Story(launch(ada)).start().step(1).evaluate(60, "stage_end", "after warm-up", 0.3)
    story.finish("succeeded", "done", "Done.")
    assert "Only one held-out evaluation was made" in browser.get("/runs/1/").content.decode()
    Story(launch(ada)).start().step(1).finish("succeeded", "done", "Done.")
    assert "No held-out evaluation was made" in browser.get("/runs/2/").content.decode()


def test_evaluations_under_other_rules_are_not_compared(ada: User) -> None:
    run = ended(ada)
    run.evaluations.filter(step=0).update(recipe="another")
    change = read_change(run)
    assert change is not None
    assert change.before is not None
    assert change.before.evaluation.step == 60


def test_a_failed_run_has_no_card(ada: User, browser: Client) -> None:
    told(ada).finish("failed", "out_of_memory", "No memory.", "Lower it.")
    assert "What changed" not in browser.get("/runs/1/").content.decode()


@pytest.mark.parametrize("text", NAMES)
def test_answers_of_any_kind_are_shown_as_text(text: str, ada: User, browser: Client) -> None:
    run = ended(ada)
    Rollout.objects.filter(group__run=run).update(completion=text, text=text)
    html = browser.get("/runs/1/changed/").content.decode()
    assert [mark for mark in RAW_MARKUP if mark in html] == []


def test_a_rising_run_is_trained_on_from_its_last_checkpoint(ada: User) -> None:
    found = proposals(ended(ada))
    assert found["Train on from step 120"] == (
        "It was still rising: +30.0 points between the last two evaluations."
    )
    assert len(found) == 3


def test_a_run_past_its_best_goes_back_to_it(ada: User) -> None:
    story = Story(launch(ada)).start().evaluate(0, "start", "base model", 0.1)
    story.step(80).checkpoint(80, best=True).evaluate(80, "interval", "step 80", 0.5)
    story.step(120).checkpoint(120).evaluate(120, "final", "final", 0.4)
    found = proposals(story.finish("succeeded", "done", "Done."))
    assert found["Restart from step 80"] == (
        "Step 80 solved 50.0 % of the held-out items, the end 40.0 %: −10.0 points."
    )
    assert not any(title.startswith("Train on") for title in found)


def test_a_stopped_run_can_be_resumed_by_those_who_may(ada: User) -> None:
    story = Story(launch(ada)).start().evaluate(0, "start", "base model", 0.1).step(90)
    story.evaluate(90, "requested", "step 90", 0.1)
    stop_run(story.run, ada)
    run = story.finish("stopped", "user", "Stopped by ada.")
    assert "Resume it" in proposals(run)
    assert "Resume it" not in proposals(run, steering=False)


def test_nothing_is_proposed_that_the_person_may_not_do(ada: User, browser: Client) -> None:
    run = ended(ada)
    assert list(proposals(run, steering=False, launching=False)) == [
        "Take the weights",
        "Download the report",
    ]
    assert "/runs/new/?checkpoint=" in browser.get("/runs/1/").content.decode()
    become(ada, Role.VIEWER)
    html = browser.get("/runs/1/").content.decode()
    assert "What next" in html
    assert "/runs/new/" not in html


@pytest.mark.parametrize(
    ("reward", "title"),
    [
        (0.95, "Use harder prompts"),
        (0.05, "Use easier prompts or a longer warm-up"),
        (0.5, "Sample larger groups"),
    ],
)
def test_dead_groups_ask_for_another_difficulty(reward: float, title: str, ada: User) -> None:
    story = Story(launch(ada)).start().evaluate(0, "start", "base model", 0.5)
    story.step(120, frac_reward_zero_std=0.7, reward=reward)
    story.evaluate(120, "final", "final", 0.5)
    found = proposals(story.finish("succeeded", "done", "Done."))
    assert found[title].startswith("70.0 % of the last step's groups had equal rewards")


def test_a_change_that_cannot_be_shown_asks_for_more_items(ada: User) -> None:
    found = proposals(ended(ada, gain=0.02))
    assert found["Evaluate on more items"].startswith("96 items cannot show this change; about 3,")


def test_a_restart_from_the_last_step_has_steps_left(ada: User, browser: Client) -> None:
    run = ended(ada)
    checkpoint = run.checkpoints.get(step=120)
    page = browser.get(f"/runs/new/?checkpoint={checkpoint.pk}").content.decode()
    assert "the last stage is twice as long here" in page
    assert 'name="stages.1.steps" value="120"' in page
    assert "to mend" not in page
