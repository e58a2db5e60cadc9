"""Sections of the curves page and what is known about each metric's name.

Used by the keys and curves endpoints and the report. Names, units and meanings come from
`training_core.contract.metrics`; a name that stands there nowhere gets a section of its own prefix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.utils.translation import gettext, gettext_noop

from training_core.contract.metrics import METRICS, MetricDef, find_metric


class Section(NamedTuple):
    """A group of charts on the page."""

    slug: str
    """Name in URLs."""
    title: str
    """Heading; `sections` gives it in the reader's language."""
    prefixes: tuple[str, ...]
    """Names that are exactly this, or begin with it and a slash, belong here."""


SECTIONS = (
    Section("eval", gettext_noop("Held-out evaluation"), ("eval",)),
    Section("reward", gettext_noop("Reward"), ("reward", "reward_std", "frac_reward_zero_std")),
    Section("rewards", gettext_noop("Reward components"), ("rewards",)),
    Section("completions", gettext_noop("Completions"), ("completions",)),
    Section(
        "optimisation",
        gettext_noop("Loss, gradient and entropy"),
        ("loss", "grad_norm", "entropy", "kl", "learning_rate", "clip_ratio", "advantage"),
    ),
    Section("sft", gettext_noop("Supervised warm-up"), ("sft",)),
    Section("sampling", gettext_noop("Sampler against trainer"), ("sampling",)),
    Section("domain", gettext_noop("Domains"), ("domain",)),
    Section("progress", gettext_noop("Data used"), ("num_tokens", "num_prompts")),
    Section("time", gettext_noop("Time and speed"), ("time", "perf")),
    Section("system", gettext_noop("System"), ("system",)),
)
COMPUTED_UNITS = frozenset({"", "s", "bytes"})
"""What `static/js/charts` asks for when it writes a value."""
_ORDER = {metric.name: place for place, metric in enumerate(METRICS)}


def describe(key: str) -> MetricDef:
    """What a metric is; an unknown one is a plain number."""
    return find_metric(key) or MetricDef(key, "", "none", "")


def meaning_of(metric: MetricDef) -> str:
    """One sentence for people, in the reader's language."""
    return gettext(metric.meaning) if metric.meaning else ""


def unit_of(metric: MetricDef) -> str:
    """Unit in the reader's language; those that charts compute with stay as they are."""
    return metric.unit if metric.unit in COMPUTED_UNITS else gettext(metric.unit)


def is_evaluation(key: str) -> bool:
    """Whether it is measured now and then on held-out items, not at every step."""
    return key.startswith("eval/") or "/eval/" in key


def sections(keys: Iterable[str]) -> list[tuple[Section, list[str]]]:
    """Keys in their sections: known sections in the order above, then others by name."""
    found: dict[str, tuple[Section, list[str]]] = {
        s.slug: (s._replace(title=gettext(s.title)), []) for s in SECTIONS
    }
    for key in sorted(keys, key=lambda key: (_place(key), key)):
        section = _section_of(key)
        found.setdefault(section.slug, (section, []))[1].append(key)
    return [(section, members) for section, members in found.values() if members]


def _place(key: str) -> int:
    """Place in the catalogue; unknown names last."""
    return _ORDER.get(describe(key).name, len(_ORDER))


def _section_of(key: str) -> Section:
    prefix = key.split("/", 1)[0]
    for section in SECTIONS:
        if prefix in section.prefixes:
            return section
    return Section(f"other-{prefix}", prefix or "/", (prefix,))
