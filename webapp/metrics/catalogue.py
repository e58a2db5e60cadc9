"""Sections of the curves page and what is known about each metric's name.

Used by the keys and curves endpoints and the report. Names, units and meanings come from
`training_core.contract.metrics`; a name that stands there nowhere gets a section of its own prefix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from training_core.contract.metrics import METRICS, MetricDef, find_metric


class Section(NamedTuple):
    """A group of charts on the page."""

    slug: str
    """Name in URLs."""
    title: str
    """Heading."""
    prefixes: tuple[str, ...]
    """Names that are exactly this, or begin with it and a slash, belong here."""


SECTIONS = (
    Section("eval", "Held-out evaluation", ("eval",)),
    Section("reward", "Reward", ("reward", "reward_std", "frac_reward_zero_std")),
    Section("rewards", "Reward components", ("rewards",)),
    Section("completions", "Completions", ("completions",)),
    Section(
        "optimisation",
        "Loss, gradient and entropy",
        ("loss", "grad_norm", "entropy", "kl", "learning_rate", "clip_ratio", "advantage"),
    ),
    Section("sft", "Supervised warm-up", ("sft",)),
    Section("sampling", "Sampler against trainer", ("sampling",)),
    Section("domain", "Domains", ("domain",)),
    Section("progress", "Data used", ("num_tokens", "num_prompts")),
    Section("time", "Time and speed", ("time", "perf")),
    Section("system", "System", ("system",)),
)
_ORDER = {metric.name: place for place, metric in enumerate(METRICS)}


def describe(key: str) -> MetricDef:
    """What a metric is; an unknown one is a plain number."""
    return find_metric(key) or MetricDef(key, "", "none", "")


def is_evaluation(key: str) -> bool:
    """Whether it is measured now and then on held-out items, not at every step."""
    return key.startswith("eval/") or "/eval/" in key


def sections(keys: Iterable[str]) -> list[tuple[Section, list[str]]]:
    """Keys in their sections: known sections in the order above, then others by name."""
    found: dict[str, tuple[Section, list[str]]] = {s.slug: (s, []) for s in SECTIONS}
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
