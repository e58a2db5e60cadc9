"""Hypothesis strategies for RunSpecs: every field takes any value that its own rule allows.

The rules are read from pydantic's metadata, not from our form, so that the form has an independent
judge. What rules between fields demand (names that differ, lengths that fit) is put right at the
end.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from training_core.contract.spec import RunSpec

ONE_LINE = st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Zl", "Zp"])
MANY_LINES = st.one_of(ONE_LINE, st.sampled_from("\n\t"))
SETTING_NAMES = st.from_regex(r"[a-z][a-z_]{0,12}", fullmatch=True)
SETTINGS = st.dictionaries(
    SETTING_NAMES,
    st.one_of(
        st.booleans(),
        st.integers(-(10**9), 10**9),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        st.text(ONE_LINE, max_size=12),
        st.sampled_from(
            ["1e5", "08", "no", "null", "~", "true", "1_000", "+", "-", "0x1f", "1:30"]
        ),
        st.lists(st.one_of(st.integers(0, 9), st.sampled_from(["+", "*", "a, b"])), max_size=3),
    ),
    max_size=4,
)


@st.composite
def specs(draw: st.DrawFn) -> RunSpec:
    """Any RunSpec of a handful of domains, rewards and stages."""
    document = draw(_model(RunSpec, depth=0))
    _make_names_differ(document)
    _make_sides_fit(document)
    return RunSpec.model_validate(document)


def _model(model: type[BaseModel], depth: int) -> st.SearchStrategy[dict[str, Any]]:
    """Documents of one model."""
    fields = {
        name: _field(info.annotation, list(info.metadata), depth)
        for name, info in model.model_fields.items()
    }
    return st.fixed_dictionaries(fields)


def _field(annotation: Any, metadata: list[Any], depth: int) -> st.SearchStrategy[Any]:
    """Values of one annotation under its constraints."""
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        for item in more:
            metadata = metadata + (item.metadata if isinstance(item, FieldInfo) else [item])
    origin = get_origin(annotation)
    if origin in {Union, types.UnionType}:
        return _union(get_args(annotation), metadata, depth)
    if origin is Literal:
        return st.sampled_from(get_args(annotation))
    if origin is tuple:
        item = get_args(annotation)[0]
        least = next((m.min_length for m in metadata if isinstance(m, MinLen)), 0)
        return st.lists(_field(item, [], depth + 1), min_size=least, max_size=max(least, 3))
    if origin is dict:
        return SETTINGS
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _model(annotation, depth)
    return _scalar(annotation, metadata)


def _union(members: tuple[Any, ...], metadata: list[Any], depth: int) -> st.SearchStrategy[Any]:
    """One of the members; trees end after two levels."""
    if depth > 4:
        members = tuple(m for m in members if getattr(m, "__name__", "") != "WeightedSumReward")
    return st.one_of(
        *(
            st.none() if member is types.NoneType else _field(member, metadata, depth + 1)
            for member in members
        )
    )


def _scalar(kind: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:
    """Numbers within their bounds, texts of their pattern."""
    bounds: dict[str, Any] = {}
    for item in metadata:
        match item:
            case Ge(ge=low):
                bounds["low"] = low
            case Gt(gt=low):
                bounds["low"] = low + 1 if kind is int else low + 1e-9
            case Le(le=high):
                bounds["high"] = high
            case Lt(lt=high):
                bounds["high"] = high - 1 if kind is int else high - 1e-9
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(bounds.get("low", -1000), bounds.get("high", 10**6))
    if kind is float:
        return st.floats(bounds.get("low", -1e6), bounds.get("high", 1e6))
    return _text(metadata)


def _text(metadata: list[Any]) -> st.SearchStrategy[str]:
    """Texts; those of one line hold no line ends, since a browser's text field cannot."""
    pattern = next((m.pattern for m in metadata if getattr(m, "pattern", None)), None)
    if pattern is not None:
        return st.from_regex(pattern, fullmatch=True, alphabet=st.characters(codec="ascii"))
    least = next((m.min_length for m in metadata if isinstance(m, MinLen)), 0)
    most = next((m.max_length for m in metadata if isinstance(m, MaxLen)), 10_000)
    alphabet = MANY_LINES if most >= 1000 else ONE_LINE
    return st.text(alphabet, min_size=least, max_size=min(most, 30))


def _make_names_differ(document: dict[str, Any]) -> None:
    """Domains, stages and rewards each have names of their own."""
    for index, domain in enumerate(document["domains"]):
        domain["name"] = f"{domain['name'][:80].rstrip('/')}/n{index}"
    for index, stage in enumerate(document["stages"]):
        stage["name"] = f"{stage['name'][:40]}-{index}"
    for index, leaf in enumerate(_leaves(document["reward"]["root"])):
        leaf["name"] = f"{leaf['name'][:40]}-{index}"


def _leaves(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Leaves of a reward tree."""
    if node["type"] == "weighted_sum":
        return [leaf for term in node["terms"] for leaf in _leaves(term["node"])]
    return [node]


def _sums(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Inner nodes of a reward tree."""
    if node["type"] != "weighted_sum":
        return []
    return [node, *(found for term in node["terms"] for found in _sums(term["node"]))]


def _make_sides_fit(document: dict[str, Any]) -> None:
    """Rules between fields."""
    document["domains"][0]["weight"] = document["domains"][0]["weight"] or 1.0
    for node in _sums(document["reward"]["root"]):
        node["terms"][0]["weight"] = node["terms"][0]["weight"] or 1.0
    for leaf in _leaves(document["reward"]["root"]):
        if leaf["type"] == "length":
            leaf["target_tokens"] = min(leaf["target_tokens"], 999_999)
            leaf["limit_tokens"] = max(leaf["limit_tokens"], leaf["target_tokens"] + 1)
    longest = 1
    for stage in document["stages"]:
        if stage["type"] == "rl":
            stage["prompts_per_step"] = min(stage["prompts_per_step"], 64)
            longest = max(longest, stage["sampling"]["max_new_tokens"])
            _make_algorithm_fit(stage["algorithm"])
    evaluation = document["evaluation"]
    evaluation["max_new_tokens"] = max(evaluation["max_new_tokens"], longest)


def _make_algorithm_fit(algorithm: dict[str, Any]) -> None:
    """Choices that would do nothing are refused."""
    if algorithm["surrogate"] != "clip":
        algorithm["dual_clip"] = None
    if algorithm["dual_clip"] is not None:
        algorithm["dual_clip"] = min(1000.0, algorithm["dual_clip"] + algorithm["clip_high"] + 1.0)
    if algorithm["surrogate"] == "reinforce":
        algorithm["ratio"] = "token"
    divergence = algorithm["divergence"]
    if algorithm["advantage"] == "per_reward":
        divergence["place"] = "loss"
    if divergence["place"] == "reward":
        divergence["importance_weighted"] = False
    elif divergence["estimator"] == "k1":
        divergence["importance_weighted"] = True
