from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Js = Callable[..., Any]


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0.123456, "", "0.1235"),
        (-0.5, "", "−0.5"),
        (1e-5, "", "1.00e−5"),
        (12345, "", "12,345"),
        (1.5e9, "", "1.50e9"),
        (0, "", "0"),
        (2_147_483_648, "bytes", "2 GiB"),
        (0, "bytes", "0 B"),
        ("NaN", "", "NaN"),
        ("Infinity", "", "∞"),
        ("-Infinity", "bytes", "−∞"),
    ],
)
def test_values_are_short_and_exact_enough(js: Js, number: Any, unit: str, text: str) -> None:
    assert js("charts/text.js", "return m.value(Number(a[0]), a[1])", [number, unit]) == text


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        ([0.12, 0.5, 0.61], "reward rose from 0.12 to 0.61 between step 1 and step 3."),
        ([2, 1], "reward fell from 2 to 1 between step 1 and step 2."),
        ([2, 2], "reward stayed at 2 between step 1 and step 2."),
        ([7], "reward is 7 at step 1."),
        (["NaN", 7, "NaN"], "reward is 7 at step 2."),
        (["NaN"], "reward has no finite value yet."),
        ([], "reward has no finite value yet."),
    ],
)
def test_one_sentence_tells_what_a_curve_does(js: Js, y: list[Any], sentence: str) -> None:
    body = """
      const y = Float64Array.from(a, Number);
      const x = y.map((_, i) => i + 1);
      return m.summary("reward", { x, y }, "step", "");
    """
    assert js("charts/text.js", body, y) == sentence


def test_the_foot_says_how_much_is_shown(js: Js) -> None:
    body = """
      const line = { x: Float64Array.from({ length: 1500 }, (_, i) => i) };
      return [m.honesty({ line, total: 1500, exact: true, bad: 0 }, null),
              m.honesty({ line, total: 1000000, exact: false, bad: 2 }, null),
              m.honesty({ line, total: 1500, exact: true, bad: 0 }, [10, 19])];
    """
    assert js("charts/text.js", body) == [
        "all 1,500 points",
        "1,500 of 1,000,000 points, extremes exact · 2 not finite",
        "all 10 points in this window",
    ]


def test_a_view_survives_its_address(js: Js) -> None:
    body = """
      const view = m.parseView(a);
      const again = m.formatView(view, a);
      return { again, axis: view.axis, weight: view.weight, range: view.range,
               log: [...view.log], closed: [...view.closed] };
    """
    address = "?tab=x&x=tokens&smooth=0.9&from=5&to=90.5&closed=system&log=a%2Fb&log=%3Cb%3E"
    got = js("charts/view.js", body, address)
    assert (
        js("charts/view.js", "return m.formatView(m.parseView(a), a)", got["again"]) == got["again"]
    )
    assert (got["axis"], got["weight"], got["range"]) == ("tokens", 0.9, [5, 90.5])
    assert (got["log"], got["closed"]) == (["a/b", "<b>"], ["system"])
    assert "tab=x" in got["again"]


@pytest.mark.parametrize("search", ["", "?x=sideways&smooth=many&from=9&to=1&superseded=yes"])
def test_what_makes_no_sense_in_an_address_is_the_default(js: Js, search: str) -> None:
    view = js("charts/view.js", "return m.parseView(a)", search)
    assert (view["axis"], view["weight"], view["range"], view["ghosts"]) == (
        "step",
        0.6,
        None,
        False,
    )
    assert js("charts/view.js", "return m.formatView(m.parseView(''), '')") == ""


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", True),
        ("FORMAT", True),
        ("rewards mean", True),
        ("rewards/format/mean", True),
        ("/^rew.*n$/", True),
        ("/(/", False),
        ("loss", False),
    ],
)
def test_search_takes_words_and_patterns(js: Js, query: str, found: bool) -> None:
    assert js("charts/view.js", "return m.matches('rewards/format/mean', a)", query) is found
