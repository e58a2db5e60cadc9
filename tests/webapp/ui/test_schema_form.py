"""The schema form: what goes in as a spec comes out as the same spec, through real HTML."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webapp.browser_form import submitted
from tests.webapp.specs import specs
from training_core.contract.field_errors import FieldError
from training_core.contract.presets import PRESETS, TINY_COPY
from training_core.contract.rewards import WeightedSumReward
from training_core.contract.spec import RunSpec
from training_core.contract.stages import RlStage
from training_core.contract.yaml_text import dump_yaml, parse_yaml, spec_to_yaml
from webapp.runs.form_look import KEY_FIELDS, LABELS, TAG_LABELS
from webapp.ui.schema_form.build import FormLook, build_form
from webapp.ui.schema_form.kinds import Kind, shapes_of
from webapp.ui.schema_form.nodes import FieldNode, GroupNode, walk
from webapp.ui.schema_form.read import change_structure, read_document
from webapp.ui.schema_form.scalars import float_text, settings_text

LOOK = FormLook(
    key_fields=KEY_FIELDS,
    labels=LABELS,
    tag_labels=TAG_LABELS,
    templates={(WeightedSumReward, "terms"): "runs/launch/form/terms.html"},
)


def through_the_form(spec: RunSpec) -> RunSpec:
    """Draw the controls, read them as a browser would, validate what it would send."""
    built = build_form(RunSpec, spec.model_dump(mode="json"), look=LOOK)
    assert built.orphans == []
    html = "".join(
        render_to_string(node.template, {"node": node, "structure_url": "/x"})
        for node in built.root.children
        if not isinstance(node, FieldNode) or node.kind is not Kind.CONSTANT
    )
    return RunSpec.model_validate(read_document(RunSpec, submitted(html)))


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.slug)
def test_a_preset_survives_form_and_yaml(preset: Any) -> None:
    assert through_the_form(preset.spec) == preset.spec
    assert RunSpec.model_validate(parse_yaml(spec_to_yaml(preset.spec))) == preset.spec


@settings(max_examples=60, deadline=None)
@given(specs())
def test_any_spec_survives_the_form(spec: RunSpec) -> None:
    assert through_the_form(spec) == spec


@settings(max_examples=60, deadline=None)
@given(specs())
def test_any_spec_survives_yaml(spec: RunSpec) -> None:
    assert RunSpec.model_validate(parse_yaml(spec_to_yaml(spec))) == spec


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_number_is_the_number(value: float) -> None:
    assert float(float_text(value)) == value


def test_numbers_read_as_people_write_them() -> None:
    assert [float_text(v) for v in (1e-5, 0.2, 8.0, 3e-4, 1e22)] == [
        "1e-5",
        "0.2",
        "8",
        "0.0003",
        "1e22",
    ]


def test_a_text_that_begins_with_a_line_end_keeps_it() -> None:
    spec = TINY_COPY.spec.model_copy(update={"notes": "\n\nsecond line\n"})
    assert through_the_form(spec).notes == "\n\nsecond line\n"


def test_settings_are_one_line_each_and_keep_their_types() -> None:
    settings_in = {"digits": 2, "operators": ["+"], "tag": "1e5", "on": True, "rate": 1e-5}
    text = settings_text(settings_in)
    assert text.splitlines()[1] == "operators: [+]"
    assert parse_yaml(text) == settings_in


def test_every_field_of_the_contract_has_a_control_and_a_sentence() -> None:
    built = build_form(RunSpec, TINY_COPY.spec.model_dump(mode="json"), look=LOOK)
    fields = [node for node in walk(built.root) if isinstance(node, FieldNode)]
    assert len(fields) > 60
    assert [node.path for node in fields if not node.help] == []


def test_what_was_typed_is_shown_again_with_its_error() -> None:
    document = TINY_COPY.spec.model_dump(mode="json")
    document["stages"][1]["steps"] = "many"
    document["stages"][1]["optimiser"]["learning_rate"] = -1
    errors = [
        FieldError("stages.1.steps", "Must be a whole number."),
        FieldError("stages.1.optimiser.learning_rate", "Must be at least 0."),
        FieldError("domains.0.params.max_digits", "Too large."),
        FieldError("", "Something about the whole."),
    ]
    built = build_form(RunSpec, document, errors, look=LOOK)
    nodes = {node.path: node for node in walk(built.root)}
    assert nodes["stages.1.steps"].text == "many"
    assert nodes["stages.1.steps"].errors == ["Must be a whole number."]
    assert nodes["stages.1.optimiser.learning_rate"].errors == ["Must be at least 0."]
    assert nodes["domains.0.params"].errors == ["max_digits: Too large."]
    assert built.orphans == [errors[3]]


def test_an_error_behind_the_fold_opens_it() -> None:
    document = TINY_COPY.spec.model_dump(mode="json")
    errors = [FieldError("stages.1.algorithm.clip_low", "Must be below 1.")]
    built = build_form(RunSpec, document, errors, look=LOOK)
    algorithm = next(
        n for n in walk(built.root) if n.path == "stages.1.algorithm" and isinstance(n, GroupNode)
    )
    assert algorithm.rest_is_wrong
    html = render_to_string(algorithm.template, {"node": algorithm})
    assert '<details class="rest" open>' in html


def test_changes_against_the_start_are_marked() -> None:
    base = TINY_COPY.spec.model_dump(mode="json")
    document = copy.deepcopy(base)
    document["stages"][1]["group_size"] = 16
    built = build_form(RunSpec, document, look=LOOK, base=base)
    changed = [n.path for n in walk(built.root) if isinstance(n, FieldNode) and n.is_changed]
    assert changed == ["stages.1.group_size"]


@pytest.mark.parametrize("document", [{}, {"domains": 3}, {"stages": [7]}, {"reward": "x"}])
def test_a_broken_document_still_draws(document: dict[str, Any]) -> None:
    built = build_form(RunSpec, document, look=LOOK)
    for node in built.root.children:
        render_to_string(node.template, {"node": node})


def test_hostile_text_is_escaped_in_every_control() -> None:
    hostile = '"><script>alert(1)</script>{{ 7*7 }}</textarea>'
    document = TINY_COPY.spec.model_dump(mode="json")
    document["name"] = document["notes"] = document["model"]["ref"] = hostile
    document["domains"][0]["system_prompt"] = document["domains"][0]["params"]["x"] = hostile
    built = build_form(RunSpec, document, look=LOOK)
    html = "".join(render_to_string(n.template, {"node": n}) for n in built.root.children)
    assert "<script" not in html
    assert html.count("</textarea>") == html.count("<textarea")
    assert submitted(html)["name"] == hostile


def test_structure_changes() -> None:
    document = TINY_COPY.spec.model_dump(mode="json")
    assert change_structure(RunSpec, document, "add:stages:rl") == "stages.2"
    assert document["stages"][2] == {"type": "rl", "name": "rl-2"}
    assert change_structure(RunSpec, document, "up:stages.2") == "stages.1"
    assert [s["name"] for s in document["stages"]] == ["warm-up", "rl-2", "rl"]
    assert change_structure(RunSpec, document, "remove:stages.0") == "stages"
    assert change_structure(RunSpec, document, "add:reward.root.terms:length") == (
        "reward.root.terms.2"
    )
    assert document["reward"]["root"]["terms"][2]["node"] == {"type": "length", "name": "length"}
    change_structure(RunSpec, document, "become:reward.root.terms.2.node:weighted_sum")
    inner = document["reward"]["root"]["terms"][2]["node"]["terms"][0]["node"]
    assert inner == {"type": "correctness", "name": "correctness-2"}
    document["evaluation"]["max_new_tokens"] = 64  # the new stage's default length
    kept = TINY_COPY.spec.stages[1].steps
    assert RunSpec.model_validate(document).total_steps == kept + RlStage().steps


@pytest.mark.parametrize(
    "action",
    [
        "",
        "add",
        "add:stages",
        "add:stages:poetry",
        "remove:stages.9",
        "remove:stages",
        "up:model.ref",
        "become:name:sft",
        "explode:stages.0",
        "add:domains.0.params:x",
        "remove:a.b.c",
    ],
)
def test_a_change_that_makes_no_sense_is_refused(action: str) -> None:
    document = TINY_COPY.spec.model_dump(mode="json")
    before = copy.deepcopy(document)
    with pytest.raises(ValueError, match=r"\w"):
        change_structure(RunSpec, document, action)
    assert document == before


def test_an_empty_list_is_posted_as_empty() -> None:
    assert read_document(RunSpec, {"name": "x"}) == {"name": "x", "domains": [], "stages": []}


def test_an_unknown_type_stays_to_be_named_by_the_validator() -> None:
    read = read_document(RunSpec, {"stages.0.type": "dpo", "stages.0.steps": "3"})
    assert read["stages"] == [{"type": "dpo"}]


def test_ranges_are_said() -> None:
    hints = {shape.name: shape.hint for shape in shapes_of(RlStage)}
    assert hints["group_size"] == "2 to 1,024"
    assert hints["steps"] == "1 or more"


def test_dump_and_parse_agree_on_words_that_look_like_numbers() -> None:
    words = {"a": "1e5", "b": "08", "c": "1.", "d": "-.5", "e": "no", "f": "~", "g": "0o7", "h": ""}
    assert parse_yaml(dump_yaml(words)) == words
