from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_core.rewards.numbers import MAX_CHARS, Number, parse_number

EQUAL = {
    "1000": r"1000|1,000|1 000|1_000|1'000|1’000|1{,}000|1\,000|1e3|1.0E+3|10^3|10^{3}|10**3|1000."
    r"|+1000|01000|1,000.00|１０００|0.1e4|1*10^3|1×10^3|1 \times 10^{3}|1\cdot 10^3"
    "|1\u00a0000|1\u202f000",
    "1234567.89": "1,234,567.89|1 234 567.89|1234567.890|1'234'567.89",
    "-5": "-5|−5|–5|﹣5|－5|- 5|-5.0|-05|(-5)|−5.|‑5",
    "5": r"5|5.0|5.|+5|05|5.000| 5 |**5**|*5*|`5`|$5$|\(5\)|\[5\]|\boxed{5}|\fbox{5}|\textbf{5}|(5)"
    "|x = 5|x=5|5 = x|= 5|answer = 5|５|٥|५|10/2|5/1|\\frac{10}{2}|5\n|\t5|\u200b5\u200b|\ufeff5",
    "18": "18|18.|18.00|**18.**|**18**.|$18$.|018",
    "1/2": r"1/2|0.5|.5|½|1 / 2|2/4|\frac{1}{2}|\dfrac12|\frac 12|1⁄2|\tfrac{1}{2}|5e-1|50e-2|0.50",
    "-1/2": r"-1/2|-.5|−½|-\frac{1}{2}|\frac{-1}{2}|-0.5",
    "5/2": r"2 1/2|2½|5/2|2.5|2\frac{1}{2}|2 ½",
    "-5/2": "-2 1/2|-2½|-2.5",
    "0": "0|0.0|-0|00|0/7|0e9|.0",
    "1/3": "1/3|2/6|⅓",
}

REFUSED = [
    *[
        "",
        " ",
        "\n",
        ".",
        "-",
        "+",
        ",",
        "/",
        "%",
        "$",
        "e",
        "E5",
        "e5",
        "x",
        "x =",
        "()",
        "**",
        "$$",
    ],
    *["0,5", "1,23", "1.000,5", "1,000,00", "1,0000", "12,34,567", "1_0", "0,500", "1,000 000"],
    *["1 00", "4 10/3", "2 500/3", "1/0", "0/0", "1/2/3", "1.5/2", "1/-2", "1 000/1", "2 0/3"],
    *[
        "inf",
        "-inf",
        "nan",
        "NaN",
        "Infinity",
        "∞",
        "1e9999",
        "1e-9999",
        "1e1001",
        "10^99999",
        "1e9e9",
    ],
    *[
        "9**9**9",
        "100000!",
        "5!",
        "2^10",
        "3+5",
        "3+5=8",
        "5-",
        "--5",
        "+-5",
        "5 5",
        "5 or 6",
        "5, 6",
    ],
    *[
        "5x",
        "5i",
        "3k",
        "2n",
        "5 million",
        "2 dozen",
        "5 squared",
        "5 pi",
        "5 and",
        "1 half",
        "5²",
        "5⁻¹",
    ],
    *["~5", "≈5", "about 5", "five", "十二", "ⅷ", "²", "0x10", "0b1", "5…", "5%%", "$5 USD", "$$5"],
    *[
        "None",
        "null",
        "N/A",
        "True",
        "[5]",
        "{5}",
        "<5>",
        "\u202e51",
        "7\x00",
        "5\u0301",
        "1:30",
        "5 = 5",
    ],
    "1" * (MAX_CHARS + 1),
]


@pytest.mark.parametrize(
    ("text", "value"),
    [(text, value) for value, texts in EQUAL.items() for text in texts.split("|")],
)
def test_numbers_are_read_exactly(text: str, value: str) -> None:
    assert parse_number(text) == Number(Fraction(value))


@pytest.mark.parametrize("text", REFUSED)
def test_everything_else_is_refused(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("$29.00", "29", "usd"),
        (r"\$29", "29", "usd"),
        ("29 USD", "29", "usd"),
        ("29 dollars", "29", "usd"),
        ("-$5", "-5", "usd"),
        ("$-5", "-5", "usd"),
        ("$1,000.50", "1000.5", "usd"),
        ("5 €", "5", "eur"),
        ("£7", "7", "gbp"),
        ("5 cm", "5", "cm"),
        ("5cm", "5", "cm"),
        (r"5\text{cm}", "5", "cm"),
        (r"5 \text{ cm}", "5", "cm"),
        (r"5\,\mathrm{cm}", "5", "cm"),
        (r"\boxed{5 \text{ cm}}", "5", "cm"),
        ("8 apples.", "8", "apple"),
        ("20°C", "20", "°c"),
        ("3 km/h", "3", "km/h"),
        ("3 m²", "3", "m^2"),
        ("3 m^2", "3", "m^2"),
        ("1E5 km", "100000", "km"),
        ("1/2 mile", "1/2", "mile"),
        ("5 g", "5", "g"),
    ],
)
def test_units_and_currencies(text: str, value: str, unit: str) -> None:
    assert parse_number(text) == Number(Fraction(value), unit=unit)


@pytest.mark.parametrize("text", ["10%", r"10\%", "10 %", "10 percent", "10.0%", "１０％", "10%."])
def test_percent_is_kept_as_written(text: str) -> None:
    assert parse_number(text) == Number(Fraction(10), percent=True)


def test_the_longest_texts_are_still_read() -> None:
    assert parse_number("9" * MAX_CHARS) == Number(Fraction(10**MAX_CHARS - 1))
    assert parse_number(" " * 5000 + "7" + " " * 5000) == Number(Fraction(7))
    assert parse_number("1e1000") == Number(Fraction(10**1000))
    assert parse_number("1e-1000") == Number(Fraction(1, 10**1000))


@given(st.integers(-(10**30), 10**30))
def test_integers_in_every_spelling(value: int) -> None:
    for text in (str(value), f"{value:,}", f"{value:_}", f" {value}.0 ", f"**{value}**"):
        assert parse_number(text) == Number(Fraction(value)), text


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**12))
def test_fractions(top: int, bottom: int) -> None:
    assert parse_number(f"{top}/{bottom}") == Number(Fraction(top, bottom))


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9
    )
)
def test_decimals(value: object) -> None:
    assert parse_number(f"{value:f}") == Number(Fraction(f"{value:f}"))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_prints_for_a_float_comes_back(value: float) -> None:
    assert parse_number(repr(value)) == Number(Fraction(repr(value)))


@given(st.text(max_size=60) | st.text(alphabet="0123456789.,/-+eE%$ ½²*^{}\\()=x", max_size=40))
def test_no_text_raises(text: str) -> None:
    number = parse_number(text)
    assert number is None or isinstance(number.value, Fraction)
