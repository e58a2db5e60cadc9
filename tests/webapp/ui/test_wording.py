"""How values read: pure functions."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from webapp.runs.status import RunState
from webapp.ui import wording

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (4.9, "just now"),
        (42, "42 s ago"),
        (180, "3 min ago"),
        (7200, "2 h ago"),
        (47 * 3600, "47 h ago"),
        (5 * 86400, "5 d ago"),
        (90 * 86400, "3 months ago"),
        (1000 * 86400, "3 years ago"),
        (-600, "in 10 min"),
    ],
)
def test_relative_times(seconds: float, words: str) -> None:
    assert wording.format_ago(NOW - timedelta(seconds=seconds), NOW) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.42, "0.4 s"),
        (9.97, "10 s"),
        (42.4, "42 s"),
        (185, "3 min 05 s"),
        (7830, "2 h 10 min"),
        (274_000, "3 d 4 h"),
        (None, "–"),
        (math.nan, "–"),
        (-1, "–"),
    ],
)
def test_durations(seconds: float | None, words: str) -> None:
    assert wording.format_duration(seconds) == words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (542_000_000, "542 MB"),
        (1_640_000_000, "1.64 GB"),
        (999_600_000, "1 GB"),
        (12e15, "12000 TB"),
        (None, "–"),
    ],
)
def test_sizes(size: float | None, words: str) -> None:
    assert wording.format_bytes(size) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1234567, "1,234,567"),
        (0.08639, "0.08639"),
        (1e-5, "1e-5"),
        (-0.25, "−0.25"),
        (12345.678, "12,346"),
        (1e22, "1e22"),
        ("NaN", "NaN"),
        ("-Infinity", "−∞"),
        (math.inf, "∞"),
        (None, "–"),
        ("", "–"),
    ],
)
def test_numbers(value: float | str | None, words: str) -> None:
    assert wording.format_number(value) == words


def test_shares_scores_and_points() -> None:
    assert wording.format_percent(0.4213) == "42.1 %"
    assert wording.format_percent("NaN") == "NaN"
    assert wording.format_score(-0.5) == "−0.500"
    assert wording.format_points(0.125) == "+12.5 points"
    assert wording.format_points(-0.125) == "−12.5 points"


def test_every_state_of_a_run_has_a_look() -> None:
    assert {state.value for state in RunState} <= set(wording.STATES)
    assert all(look.meaning for look in wording.STATES.values())
