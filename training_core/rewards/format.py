"""The format leaf: a small grammar of tags, checked left to right.

1 when every tag stands exactly once, in order, closed and not empty, and nothing stands outside but
white space (unless text outside is allowed); else 0 with the first fault. No partial credit: half a
format is easy to collect and teaches nothing. Called by `training_core.rewards.tree`.
"""

from __future__ import annotations

from training_core.contract.rewards import FormatReward
from training_core.rewards.completion import CompletionView, LeafScore, scored, shown
from training_core.rewards.tags import Tag, find_tags

_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"))


def score_format(spec: FormatReward, view: CompletionView) -> LeafScore:
    """1 for a completion that keeps to the grammar, 0 for one that does not."""
    fault = find_fault(view.text, spec.tags, spec.allow_text_outside)
    if fault is not None:
        return scored(0.0, fault)
    return scored(1.0, f"{' '.join(f'<{name}>' for name in spec.tags)} as asked for")


def find_fault(text: str, names: tuple[str, ...], allow_text_outside: bool) -> str | None:
    """The first departure from the grammar, in words, or None."""
    expected = [(name, closing) for name in names for closing in (False, True)]
    position = step = 0
    for tag in find_tags(text, names):
        if step == len(expected) or (tag.name, tag.closing) != expected[step]:
            return _misplaced(tag, expected, step)
        between = text[position : tag.start]
        if tag.closing and not between.translate(_INVISIBLE).strip():
            return f"<{tag.name}> is empty"
        if not (tag.closing or allow_text_outside) and between.strip():
            return f"text outside the tags: {shown(between)!r}"
        position = tag.end
        step += 1
    if step < len(expected):
        return _missing(text, *expected[step])
    if not allow_text_outside and text[position:].strip():
        return f"text outside the tags: {shown(text[position:])!r}"
    return None


def _misplaced(tag: Tag, expected: list[tuple[str, bool]], step: int) -> str:
    """Why a tag may not stand where it stands."""
    if step < len(expected) and expected[step][1]:
        return f"{tag.text} stands inside <{expected[step][0]}>"
    if tag.closing:
        return f"{tag.text} closes nothing"
    if (tag.name, False) in expected[:step]:
        return f"{tag.text} stands more than once"
    return f"{tag.text} stands out of order"


def _missing(text: str, name: str, closing: bool) -> str:
    """What is missing at the end of the text."""
    if closing:
        return f"<{name}> is never closed"
    if f"<{name}>" in text.casefold():
        return f"no <{name}> tag: it is written in another case"
    return f"no <{name}> tag"
