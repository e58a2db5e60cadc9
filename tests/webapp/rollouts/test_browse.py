"""Finding rollouts: steps, filters, search, neighbours, and how completions are drawn."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.stories import launch, make_group
from webapp.accounts.models import User
from webapp.rollouts.browse import RolloutQuery, browse
from webapp.rollouts.marks import mark_special, score_bars
from webapp.rollouts.services import add_groups
from webapp.runs.models import Run


@pytest.fixture
def run(ada: User) -> Run:
    run = launch(ada)
    for step in (2, 4, 9):
        add_groups(run.pk, 1, [make_group(step, i, "train", 4, "rl") for i in range(5)])
    add_groups(run.pk, 1, [make_group(0, i, "evaluate", 1, "rl") for i in range(3)])
    return run


def query(**values: str) -> RolloutQuery:
    return RolloutQuery.from_address(values)


def test_the_newest_training_step_comes_first(run: Run) -> None:
    shown = browse(run.pk, query())
    assert (shown.query.kind, shown.step, shown.last_step) == ("train", 9, 9)
    assert (shown.previous_step, shown.next_step) == (4, None)
    assert len(shown.groups) == shown.total == 5
    assert shown.group == shown.groups[0]
    assert len(shown.rollouts) == 4


@pytest.mark.parametrize(("asked", "shown"), [(3, 2), (4, 4), (1, 2), (100, 9), (0, 2)])
def test_a_step_without_rollouts_shows_the_nearest(asked: int, shown: int, run: Run) -> None:
    assert browse(run.pk, query(step=str(asked))).step == shown


def test_neighbours_of_a_group(run: Run) -> None:
    groups = browse(run.pk, query(step="4")).groups
    shown = browse(run.pk, query(step="4", group=str(groups[2].pk)))
    assert shown.group == groups[2]
    assert (shown.previous_group, shown.next_group) == (groups[1], groups[3])
    first = browse(run.pk, query(step="4"))
    assert first.previous_group is None


def test_every_outcome_filter_means_what_it_says(run: Run) -> None:
    everything = browse(run.pk, query(all="1")).groups
    for outcome, fits in {
        "passed": lambda g: g.passed > 0,
        "failed": lambda g: g.passed == 0,
        "mixed": lambda g: not g.zero_spread,
        "zero_spread": lambda g: g.zero_spread,
        "truncated": lambda g: g.truncated > 0,
        "unscored": lambda g: g.unscored > 0,
    }.items():
        found = browse(run.pk, query(all="1", outcome=outcome)).groups
        assert found == [group for group in everything if fits(group)], outcome


def test_search_looks_into_completions_of_the_step_or_of_all(run: Run) -> None:
    text = browse(run.pk, query(step="2")).rollouts[0].completion
    here = browse(run.pk, query(step="9", q=text)).total
    everywhere = browse(run.pk, query(step="9", q=text, all="1")).total
    assert 0 <= here <= everywhere
    assert everywhere > 0
    assert browse(run.pk, query(q="zebra", all="1")).groups == []


def test_a_group_of_another_run_is_not_shown(run: Run, ada: User) -> None:
    other = launch(ada, "other")
    add_groups(other.pk, 1, [make_group(1, 0, "train", 2, "rl")])
    foreign = browse(other.pk, query()).group
    assert foreign is not None
    shown = browse(run.pk, query(group=str(foreign.pk))).group
    assert shown is not None
    assert shown.run_id == run.pk


def test_nonsense_in_the_address_is_left_out() -> None:
    assert query(kind="x", step="-1", outcome="x", group="1e3", view="x") == RolloutQuery()
    assert query(step="9" * 30).step is None


def test_an_address_is_read_back() -> None:
    full = RolloutQuery("train", 3, "math/add", "mixed", "a & b", True, 7, "stack")
    address = full.address()
    pairs = dict(part.split("=") for part in address[1:].split("&"))
    assert pairs["q"] == "a+%26+b"
    assert RolloutQuery.from_address({**pairs, "q": "a & b", "domain": "math/add"}) == full


def test_special_tokens_are_boxed_and_all_else_is_escaped() -> None:
    html = mark_special("<|im_start|>user\n<b>hi</b></s><|im_end|>")
    assert html.count('<span class="special">') == 3
    assert "&lt;b&gt;hi&lt;/b&gt;" in html
    assert '<span class="special">&lt;|im_end|&gt;</span>' in html
    assert "(empty)" in mark_special("")


def score(**values: Any) -> dict[str, Any]:
    return {"name": "r", "weight": 1.0, "status": "ok", "value": 1.0, "explanation": ""} | values


def test_bars_are_to_scale() -> None:
    (full, half, below, unscored, lost) = score_bars(
        [
            score(),
            score(value=0.5),
            score(value=-0.5),
            score(value=None, status="timeout"),
            score(value="NaN"),
        ]
    )
    assert (full.x, full.width) == (0, 100)
    assert (half.x, half.width, half.tone) == (0, 50, "ok")
    assert (below.x, below.width, below.zero, below.tone) == (25, 25, 50, "bad")
    assert (unscored.is_scored, unscored.text) == (False, "timed out")
    assert (lost.is_scored, lost.text) == (True, "nan")


def test_the_tab_and_its_fragment(run: Run, browser: Client) -> None:
    page = browser.get(reverse("runs:rollouts", args=[run.number])).content.decode()
    assert page.count('class="completion panel') == 4
    assert "right answer" in page
    part = browser.get(reverse("rollouts:index", args=[run.number]) + "?kind=evaluate")
    html = part.content.decode()
    assert "<html" not in html
    assert html.count('class="completion panel') == 1
    assert "advantage" not in html  # evaluation has none


def test_a_run_without_rollouts(browser: Client, ada: User) -> None:
    empty = launch(ada)
    page = browser.get(reverse("runs:rollouts", args=[empty.number])).content.decode()
    assert "No rollouts yet" in page


@pytest.mark.parametrize("name", NAMES)
def test_hostile_completions_are_escaped(name: str, browser: Client, ada: User) -> None:
    run = launch(ada)
    record = make_group(1, 0, "train", 2, "rl")
    hostile = record.rollouts[0].model_copy(update={"completion": name, "text": name})
    messages = tuple(turn.model_copy(update={"content": name}) for turn in record.messages)
    add_groups(
        run.pk,
        1,
        [record.model_copy(update={"rollouts": (hostile,), "messages": messages, "answer": name})],
    )
    page = browser.get(reverse("runs:rollouts", args=[run.number])).content.decode()
    assert not [raw for raw in RAW_MARKUP if raw in page]
    assert ("{{ 7*7 }}" in page) is ("{{ 7*7 }}" in name)
