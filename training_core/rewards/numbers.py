"""Plain numbers as people and models write them, read exactly.

`parse_number` turns `1,000`, `−5`, `2 1/2`, `$29.00`, `10%`, `5 cm`, `1.5e3` or `\\frac{1}{2}` into
an exact fraction with its unit, and gives None for everything else: no guess is made. Called by the
correctness leaf for both sides.

Decisions that may surprise:
- A comma groups thousands and is never a decimal point: `0,5` and `1.000,5` are refused.
- `10%` is one tenth. Against an answer that is itself in percent, a bare `10` counts as well.
- A unit is one word or sign. It is compared only when both sides have one, so `5 cm` equals `5`.
  Words that change a value (`million`, `squared`, `or`) are no units, nor are single letters that
  could be variables: `5x`, `5i` and `3k` are refused.
- Texts of more than 1,000 characters and exponents beyond 1,000 are refused, so that a score takes
  bounded time; so are infinity, NaN and bidirectional overrides.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

MAX_CHARS = 1_000
MAX_EXPONENT = 1_000


class Number(NamedTuple):
    """A number with its unit."""

    value: Fraction
    """The number as written: 10 for `10%`."""
    percent: bool = False
    """Whether it is in percent."""
    unit: str = ""
    """Unit in lower case without a plural s; empty for none."""


_MINUS = "\u2212\u2013\u2010\u2011\ufe63\uff0d"
_SPACES = "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_SIGNS: dict[int, str | None] = {
    **dict.fromkeys(map(ord, _MINUS), "-"),
    **dict.fromkeys(map(ord, _SPACES), " "),
    **dict.fromkeys(map(ord, _INVISIBLE), None),
    ord("\uff0b"): "+",
    ord("\uff0e"): ".",
    ord("\uff0c"): ",",
    ord("\u2044"): "/",
    ord("\u2215"): "/",
    ord("\uff05"): "%",
    ord("\u2019"): "'",
}
_LATEX = (
    (
        re.compile(r"\\[dt]?frac\s?(?:\{([^{}]{1,100})\}\s?\{([^{}]{1,100})\}|(\d)\s?(\d))"),
        r" \1\3/\2\4",
    ),
    (re.compile(r"\\(?:text|mathrm|textbf|mathbf)\s?\{([^{}]{0,200})\}"), r" \1 "),
    (re.compile(r"\\(?:boxed|fbox)\s?\{([^{}]{0,200})\}"), r" \1 "),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\[,!;: ]"), ""),
    (re.compile(r"\\(?:times|cdot)(?![a-zA-Z])"), "*"),
    (re.compile(r"\\([$%])"), r"\1"),
)
_WRAPPED = re.compile(
    r"\*\*(.+)\*\*|\*(.+)\*|`(.+)`|\$(.+)\$|\((.+)\)|\\\((.+)\\\)|\\\[(.+)\\\]", re.S
)
_ASSIGNED = re.compile(r"[A-Za-z]\w{0,19}\s?=\s?([^=]+)|([^=]+?)\s?=\s?[A-Za-z]|=\s?([^=]+)")
_NUMBER = re.compile(
    r"""
    (?P<currency>[$€£¥₹]\s?)? (?P<sign>[-+])?\s? (?P<currency_after>[$€£¥₹]\s?)?
    (?:
        (?:(?P<whole>\d+)\s)? (?P<top>\d+)\s?/\s?(?P<bottom>\d+)
      | (?: (?P<grouped>[1-9]\d{0,2}(?P<separator>[,_'\ ])\d{3}(?:(?P=separator)\d{3})*)
          | (?P<plain>\d+) )?
        (?P<decimals>\.\d*)?
        (?: [eE](?P<exponent>[-+]?\d{1,6})
          | \s?[*x×]\s?10(?:\^|\*\*)\{?(?P<power>[-+]?\d{1,6})\}? )?
      | 10(?:\^|\*\*)\{?(?P<bare_power>[-+]?\d{1,6})\}?
    )
    (?: \s?(?P<percent>%|percent)
      | \s?(?P<unit>[$€£¥₹]
          | [°A-Za-zµμΩ℃℉]{1,24}(?:/[A-Za-zµμ]{1,12})?(?:\^\{?-?\d\}?|[²³])?) )?
    """,
    re.X,
)
_CURRENCIES = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr"}
_SAME_UNIT = {"dollar": "usd", "euro": "eur", "yen": "jpy", "rupee": "inr"}
_ONE_LETTER_UNITS = frozenset("mgshlLNJWVACKFt°Ω")
_NO_UNIT = re.compile(
    "hundred|thousand|[mb]illions?|trillions?|dozens?|bn|mn|mil|halves|half|thirds?|quarters?"
    "|squared|cubed|factorial|pi|tau|mod|or|and|plus|minus|times|over|by|to|inf|infinity|nan"
    "|sqrt|log|exp"
)
"""Words after a number that change its value."""


def parse_number(text: str) -> Number | None:
    """The number that a text is, or None where it is anything else. Never raises."""
    text = text.strip()
    return _parse(text) if 0 < len(text) <= MAX_CHARS else None


@lru_cache(maxsize=8192)
def _parse(text: str) -> Number | None:
    """`parse_number` for a text of bounded length."""
    if not text.isascii():
        text = _to_ascii_digits(text)
    if "\\" in text or "{" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    match = _NUMBER.fullmatch(_unwrap(text))
    return None if match is None else _number(match)


def _to_ascii_digits(text: str) -> str:
    """Digits of any script, minus signs, spaces and vulgar fractions in their plain form."""
    chars = []
    for char in text.translate(_SIGNS):
        if char.isascii():
            chars.append(char)
        elif char.isdecimal():
            chars.append(str(unicodedata.decimal(char)))
        elif "\u00bc" <= char <= "\u00be" or "\u2150" <= char <= "\u215e":
            chars.append(" " + unicodedata.normalize("NFKC", char).replace("\u2044", "/"))
        else:
            chars.append(char)
    return "".join(chars)


def _unwrap(text: str) -> str:
    """Take off emphasis, maths and round brackets, `x =` and a full stop at the end."""
    for _ in range(6):
        text = " ".join(text.split())
        if len(text) > 1 and text.endswith("."):
            text = text[:-1]
        elif match := (_WRAPPED.fullmatch(text) or _ASSIGNED.fullmatch(text)):
            text = next(group for group in match.groups() if group is not None)
        else:
            break
    return text


def _number(match: re.Match[str]) -> Number | None:
    """The value of a text that has the form of a number."""
    value = _fraction(match) if match["bottom"] else _decimal(match)
    unit = _unit(match)
    if value is None or unit is None:
        return None
    return Number(-value if match["sign"] == "-" else value, match["percent"] is not None, unit)


def _fraction(match: re.Match[str]) -> Fraction | None:
    """Fractions and mixed numbers; `4 10/3` and a division by zero are none."""
    top, bottom = int(match["top"]), int(match["bottom"])
    if bottom == 0 or (match["whole"] and not 0 < top < bottom):
        return None
    return int(match["whole"] or 0) + Fraction(top, bottom)


def _decimal(match: re.Match[str]) -> Fraction | None:
    """Decimals with grouped thousands and an exponent."""
    exponent = int(match["exponent"] or match["power"] or match["bare_power"] or 0)
    whole = re.sub(r"\D", "", match["grouped"] or match["plain"] or "")
    decimals = (match["decimals"] or ".")[1:]
    digits = "1" if match["bare_power"] else whole + decimals
    if not digits or abs(exponent) > MAX_EXPONENT:
        return None
    return int(digits) * Fraction(10) ** (exponent - len(decimals))


def _unit(match: re.Match[str]) -> str | None:
    """Unit in its plain form, empty for none, None for a word that is no unit."""
    currencies = [match[name] for name in ("currency", "currency_after") if match[name]]
    unit: str = match["unit"] or ""
    if currencies and (unit or len(currencies) > 1):
        return None
    if currencies:
        return _CURRENCIES[currencies[0].strip()]
    if unit in _CURRENCIES:
        return _CURRENCIES[unit]
    if len(unit) == 1 and unit not in _ONE_LETTER_UNITS:
        return None
    unit = unit.lower().replace("²", "^2").replace("³", "^3")
    if _NO_UNIT.fullmatch(unit):
        return None
    singular = unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit
    return _SAME_UNIT.get(singular, singular)
