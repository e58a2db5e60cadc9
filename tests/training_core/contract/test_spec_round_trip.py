from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.training_core.contract.documents import changed, document
from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.presets import PRESETS, find_preset
from training_core.contract.spec import RunSpec
from training_core.contract.yaml_text import parse_yaml, spec_to_yaml
from training_core.domains.sources import validate_answers, validate_domain

SLUGS = [preset.slug for preset in PRESETS]


def through_yaml(spec: RunSpec) -> RunSpec:
    return RunSpec.model_validate(parse_yaml(spec_to_yaml(spec)))


@pytest.mark.parametrize("slug", SLUGS)
def test_presets_survive_json_and_yaml(slug: str) -> None:
    spec = find_preset(slug).spec  # type: ignore[union-attr]
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec
    assert RunSpec.model_validate(json.loads(spec.model_dump_json())) == spec
    assert through_yaml(spec) == spec


@pytest.mark.parametrize("slug", SLUGS)
def test_presets_can_be_launched(slug: str) -> None:
    """Settings that the generator takes, enough held-out questions, answers the rewards can use."""
    spec = find_preset(slug).spec  # type: ignore[union-attr]
    for domain in spec.domains:
        assert validate_domain(domain) == []
        assert validate_answers(domain, spec.reward) == []


def test_preset_slugs_differ_and_unknown_ones_are_none() -> None:
    assert len(set(SLUGS)) == len(SLUGS)
    assert find_preset("nope") is None


TEXT = st.text(max_size=40).filter(lambda text: "\0" not in text)
VALUES = st.one_of(
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.lists(st.one_of(st.integers(-9, 9), TEXT), max_size=4).map(tuple),
)
TRAPS = ["no", "on", "~", "null", "1e5", "010", "0x1f", "1_000", "1:30", "2020-01-01", "=", "<<"]
TRAPS += [
    ".inf",
    ".nan",
    "-",
    "- a",
    "a: b",
    "#x",
    "'",
    '"',
    "\t",
    "a\nb",
    " x ",
    "!tag",
    "&a",
    "*a",
]
TRAPS += ["1.", ".5", "+1", "0o17", "yes", "True", "", "|", ">", "%", "@", "`", "\u2028", "é", "😀"]


@settings(deadline=None, max_examples=150)
@given(
    notes=TEXT | st.sampled_from(TRAPS),
    template=(TEXT | st.sampled_from(TRAPS)).map(lambda text: text + "{question}"),
    params=st.dictionaries(
        TEXT | st.sampled_from(TRAPS), VALUES | st.sampled_from(TRAPS), max_size=4
    ),
    weight=st.floats(1e-9, 1e6),
    seed=st.integers(0, 2**31 - 1),
    rate=st.floats(0, 1),
)
def test_any_spec_survives_json_and_yaml(
    notes: str, template: str, params: dict[str, Any], weight: float, seed: int, rate: float
) -> None:
    """1e-5 stays a number, `no` a word, 5 and 5.0 what they were, spaces and line ends intact."""
    data = document() | {"notes": notes, "seed": seed}
    data["domains"][0] |= {"question_template": template, "params": params, "weight": weight}
    data["stages"][0]["optimiser"]["learning_rate"] = rate
    spec = RunSpec.model_validate(data)
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec
    again = through_yaml(spec)
    assert again == spec
    domain, before = again.domains[0], spec.domains[0]
    assert isinstance(domain, ReasoningGymDomain)
    assert isinstance(before, ReasoningGymDomain)
    kinds = [(name, type(value)) for name, value in domain.params.items()]
    assert kinds == [(name, type(value)) for name, value in before.params.items()]


def test_defaults_are_filled_in() -> None:
    data = document()
    small = {key: data[key] for key in ("name", "domains", "reward", "stages")}
    small["evaluation"] = {"max_new_tokens": 32}
    spec = RunSpec.model_validate(small)
    assert (spec.spec_version, spec.seed, spec.model.ref) == (1, 0, "smollm2-135m-instruct")
    assert spec.total_steps == sum(stage["steps"] for stage in data["stages"])


def test_a_spec_cannot_be_changed() -> None:
    spec = RunSpec.model_validate(document())
    with pytest.raises(ValidationError, match="frozen"):
        spec.seed = 5


def test_every_field_has_a_sentence_for_people() -> None:
    schema = RunSpec.model_json_schema()
    missing = [
        f"{name}.{field}"
        for name, model in {"RunSpec": schema, **schema["$defs"]}.items()
        for field, about in model.get("properties", {}).items()
        if not about.get("description") and "$ref" not in about  # then the model's own sentence
    ]
    assert missing == []


def test_a_spec_of_another_version_is_refused() -> None:
    with pytest.raises(ValidationError):
        RunSpec.model_validate(changed("spec_version", 2))
