from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from training_core.domains.generator_params import ParamsRefused, build_config


@dataclass
class Settings:
    whole: int = 1
    whole_most: int = 99
    real: float = 0.5
    text: str = "a"
    flag: bool = False
    style: Literal["plain", "long"] = "plain"
    words: list[str] = ("x",)  # type: ignore[assignment]
    pair: tuple[int, int] = (1, 2)
    many: tuple[float, ...] = ()
    maybe: int | None = None
    anything: Any = None
    nested: list[dict[str, int]] = field(default_factory=list)
    seed: int | None = None
    size: int = 500

    def validate(self) -> None:
        if self.whole <= 0:
            raise AssertionError("whole must be positive")
        if self.whole > self.pair[1] * 100:
            raise ValueError("whole must be\n  below pair!")
        if self.whole_most < self.whole:
            raise AssertionError("whole_most must be >= whole")
        if self.real == 7:
            raise AssertionError


def built(**params: Any) -> Settings:
    made = build_config(Settings, params, seed=3, size=9)
    assert isinstance(made, Settings)
    return made


def refusals(**params: Any) -> list[tuple[str, str]]:
    with pytest.raises(ParamsRefused) as caught:
        build_config(Settings, params, seed=3, size=9)
    return [tuple(error) for error in caught.value.errors]


def test_values_take_the_type_of_the_annotation() -> None:
    made = built(
        whole=2.0, real=3, words=("p", "q"), pair=(4, 5), many=(1, 2.5), maybe=6, flag=True
    )
    assert (made.whole, type(made.whole)) == (2, int)
    assert (made.real, type(made.real)) == (3.0, float)
    assert made.words == ["p", "q"]
    assert made.pair == (4, 5)
    assert made.many == (1.0, 2.5)
    assert (made.maybe, made.flag) == (6, True)
    assert (made.seed, made.size) == (3, 9)
    assert built(anything=(1, "a")).anything == [1, "a"]
    assert built(style="long").style == "long"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("whole", "2", "Must be a whole number; got '2'."),
        ("whole", 2.5, "Must be a whole number; got 2.5."),
        ("whole", True, "Must be a whole number; got True."),
        ("whole", (1,), "Must be a whole number; got (1,)."),
        ("real", "x", "Must be a number; got 'x'."),
        ("real", False, "Must be a number; got False."),
        ("text", 5, "Must be text; got 5."),
        ("flag", 1, "Must be true or false; got 1."),
        ("style", "short", "Must be one of 'plain', 'long'; got 'short'."),
        ("words", "x", "Must be a list; got 'x'."),
        ("words", ("x", 1), "Must be text; got 1."),
        ("pair", (1, 2, 3), "Must be a list of 2 values; got 3."),
        ("maybe", "x", "Must be a whole number; got 'x'."),
        ("nested", ("x",), "Cannot be set here: the generator wants a structure of its own."),
        ("wohle", 1, "No such setting. Did you mean 'whole'?"),
        ("seed", 1, "'seed' is set by the run itself; leave it out."),
        ("size", 1, "'size' is set by the run itself; leave it out."),
        ("whole", 0, "Whole must be positive."),
        ("whole", 400, "Whole must be below pair!"),
        ("real", 7, "The generator does not take these settings together."),
    ],
)
def test_each_fault_stands_at_its_setting(name: str, value: Any, message: str) -> None:
    path = "params" if "together" in message else f"params.{name}"
    assert refusals(**{name: value}) == [(path, message)]


def test_an_unknown_setting_without_a_close_one_lists_what_there_is() -> None:
    [(path, message)] = refusals(zzz=1)
    assert path == "params.zzz"
    assert message.startswith("No such setting. There are: anything, flag, many")
    assert "seed" not in message


def test_the_longest_name_in_a_complaint_is_meant() -> None:
    assert refusals(whole=5, whole_most=4) == [
        ("params.whole_most", "whole_most must be >= whole.")
    ]


def test_all_faults_are_found_at_once() -> None:
    assert [path for path, _ in refusals(whole="x", nothing=1, flag=2)] == [
        "params.whole",
        "params.nothing",
        "params.flag",
    ]


@pytest.mark.parametrize("value", [10**400, -(10**400), (1, 10**400)])
@pytest.mark.parametrize("name", ["real", "many"])
def test_a_whole_number_beyond_floats_is_an_error_at_its_setting(name: str, value: Any) -> None:
    ((path, message),) = refusals(**{name: value})
    assert path == f"params.{name}"
    assert message.startswith("Must be ")


def test_a_whole_number_beyond_floats_in_a_list() -> None:
    ((path, message),) = refusals(many=(10**400,))
    assert (path, message) == (
        "params.many",
        "Must be a number between -1.79769e+308 and 1.79769e+308.",
    )
