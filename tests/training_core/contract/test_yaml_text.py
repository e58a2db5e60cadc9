from __future__ import annotations

import math
from typing import Any

import pytest

from training_core.contract.yaml_text import YamlError, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1E5", 1e5),
        ("+1e5", 1e5),
        ("1.5e-3", 1.5e-3),
        (".5", 0.5),
        ("5.", 5.0),
        ("-3", -3),
        ("010", 10),
        ("0008", 8),
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("TRUE", "TRUE"),
        ("null", None),
        ("~", None),
        ("", None),
        ("0x10", "0x10"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2020-01-01", "2020-01-01"),
        ("1e5x", "1e5x"),
        ("=", "="),
        ("'1e5'", "1e5"),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("[1, a, 2.5]", [1, "a", 2.5]),
        ("!!str 12", "12"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_scalars_mean_what_they_look_like(text: str, value: Any) -> None:
    read = parse_yaml(f"key: {text}")["key"]
    assert read == value
    assert type(read) is type(value)


def test_a_merge_key_is_an_ordinary_key() -> None:
    assert parse_yaml("<<: {a: 1}") == {"<<": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' stands twice"),
        ("a:\n  b: 1\n  b: 2", "line 3: the key 'b' stands twice"),
        ("{a: 1, a: 2}", "line 1: the key 'a' stands twice"),
        ("a: &x 1\nb: *x", "line 2: aliases are not allowed"),
        ("a: !!python/object/apply:os.system [ls]", "line 1: could not determine a constructor"),
        ("a: !!python/name:os.system", "line 1: could not determine a constructor"),
        ("a: !secret 1", "line 1: could not determine a constructor for the tag '!secret'"),
        ("b: 1\na: !!timestamp 2024-13-45", "line 2: could not determine a constructor"),
        ("a: !!binary eA==", "line 1: could not determine a constructor"),
        ("a: !!set {b}", "line 1: could not determine a constructor"),
        ("b: 1\na: !!int x", "line 2: the text is not what its tag !!int says"),
        ("a: !!int ''", "line 1: the text is not what its tag !!int says"),
        ("a: !!float x", "line 1: the text is not what its tag !!float says"),
        ("a: !!bool maybe", "line 1: the text is not what its tag !!bool says"),
        ("a: [1", "line 1: "),
        ("a: 'x", "line 1: found unexpected end of stream"),
        ("a: 1\n\tb: 2", "line 2: "),
        ("a: 1\n---\nb: 2", "line 2: but found another document"),
        ("? [1, 2]\n: 3", "line 1: found unhashable key"),
        ("a: \x07", "not YAML: unacceptable character #x0007"),
        ("a: \0", "not YAML: unacceptable character #x0000"),
        ("- 1\n- 2", "expected a mapping of fields"),
        ("just words", "expected a mapping of fields"),
        ("", "expected a mapping of fields"),
        ("a: " + "9" * 5_000, "line 1: the number has more than 1,000 digits"),
        ("a: " + "[" * 5_000, "nested too deeply"),
        ("a: " + "{b: " * 5_000, "nested too deeply"),
        ("a" * 400_001, "longer than 400,000 characters"),
    ],
)
def test_everything_else_is_one_error_with_its_line(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    with pytest.raises(YamlError, match="aliases are not allowed"):
        parse_yaml("\n".join(lines))
