from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.training_core.contract.documents import DELETE, changed, document
from training_core.contract.field_errors import PATTERN_WORDS, FieldError, field_errors
from training_core.contract.spec import RunSpec


def errors_of(data: Any) -> list[FieldError]:
    with pytest.raises(ValidationError) as caught:
        RunSpec.model_validate(data)
    return field_errors(caught.value)


RATE = "stages.0.optimiser.learning_rate"
NODE = "reward.root.terms.0.node"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("name", DELETE, "This field is required."),
        ("name", "", "Must not be empty."),
        ("name", 5, "Must be text; got 5."),
        ("name", "x" * 121, "Must have at most 120 characters."),
        ("notes", "x" * 20_001, "Must have at most 20,000 characters."),
        ("name", "a\0b", "Holds a NUL character; take it out."),
        ("domains.0.system_prompt", "a\0b", "Holds a NUL character; take it out."),
        ("name", "\ud800", "Must be text without half surrogate pairs; got '\\ud800'."),
        ("seed", -1, "Must be at least 0; got -1."),
        ("seed", 2**31, "Must be below 2,147,483,648; got 2147483648."),
        ("seed", "x", "Must be a whole number; got 'x'."),
        ("seed", 1.5, "Must be a whole number; got 1.5."),
        ("seed", None, "Must be a whole number; got None."),
        ("seed", [1], "Must be a whole number; got [1]."),
        (RATE, 2, "Must be at most 1; got 2."),
        (RATE, "fast", "Must be a number; got 'fast'."),
        (RATE, None, "Must be a number; got None."),
        (RATE, float("nan"), "Must be a finite number."),
        (RATE, float("inf"), "Must be a finite number."),
        ("stages.0.steps", 2_000_000, "Must be at most 1,000,000; got 2000000."),
        ("stages.1.optimiser.beta1", 1, "Must be below 1; got 1."),
        ("stages.1.sampling.temperature", 0, "Must be above 0; got 0."),
        ("stages.1.type", "dpo", "Must be one of 'sft', 'rl'; got 'dpo'."),
        ("stages.1.type", DELETE, "This field is required."),
        (
            "stages.1.algorithm.type",
            "gpro",
            "Must be one of 'grpo', 'dr_grpo', 'dapo', 'gspo', 'cispo', 'rloo', "
            "'reinforce_plus_plus', 'reinforce_plus_plus_baseline'; got 'gpro'.",
        ),
        ("stages.1", 5, "Must be a group of fields; got 5."),
        ("domains.0.type", "web", "Must be one of 'reasoning_gym', 'dataset'; got 'web'."),
        ("domains.0.params", [1], "Must be a group of named values; got [1]."),
        ("domains.0.held_out_items", 1, "Must be at least 2; got 1."),
        ("domains", [], "Needs at least 1 item."),
        ("domains", 5, "Must be a list; got 5."),
        ("resources.device", "tpu", "Must be one of 'auto', 'cpu' or 'cuda'; got 'tpu'."),
        ("evaluation.at_start", "maybe", "Must be true or false; got 'maybe'."),
        ("budget.max_minutes", 0, "Must be above 0; got 0."),
        (f"{NODE}.tolerance", 2, "Must be at most 1; got 2."),
        (f"{NODE}.type", "vibes", None),
        ("reward.root", DELETE, "This field is required."),
        ("reward.root.terms", [], "Needs at least 1 item."),
        ("domains.0.name", "Math Add", None),
    ],
)
def test_each_error_stands_at_its_field(path: str, value: Any, message: str | None) -> None:
    [error] = errors_of(changed(path, value))
    assert error.path == path
    if message is not None:
        assert error.message == message
    assert error.message.endswith(".")


@pytest.mark.parametrize(
    ("path", "value", "at", "words"),
    [
        ("evaluation.max_new_tokens", 1, "evaluation.max_new_tokens", "must be at least"),
        ("stages.1.name", "warm-up", "stages", "The name warm-up is used twice."),
        ("domains.0.weight", 0, "domains", "At least one weight must be above 0."),
        ("reward.root.terms.1.node.name", "correctness", "reward", "named correctness"),
        ("stages.1.prompts_per_step", 60_000, "stages.1", "65,536 rollouts"),
        (
            NODE,
            {"type": "length", "target_tokens": 9, "limit_tokens": 9},
            f"{NODE}.limit_tokens",
            "larger than target_tokens",
        ),
    ],
)
def test_rules_over_several_fields(path: str, value: Any, at: str, words: str) -> None:
    [error] = errors_of(changed(path, value))
    assert error.path.startswith(at)
    assert words.lower() in error.message.lower()


@pytest.mark.parametrize(
    ("path", "guess"),
    [
        ("nam", "name"),
        ("stages.0.optimiser.learning_rte", "learning_rate"),
        ("domains.0.weigth", "weight"),
        ("stages.1.group_sise", "group_size"),
    ],
)
def test_an_unknown_field_is_named_with_the_nearest_one(path: str, guess: str) -> None:
    [error] = errors_of(changed(path, 1))
    assert error.path == path
    field = path.rsplit(".", 1)[-1]
    assert error.message == f"There is no field {field!r} here. Did you mean {guess!r}?"


def test_a_field_in_the_wrong_place_is_not_guessed_as_itself() -> None:
    """It said "no field 'learning_rate' here. Did you mean 'learning_rate'?"."""
    [error] = errors_of(changed("learning_rate", 1e-5))
    assert error.message == "There is no field 'learning_rate' here."


def test_a_field_like_nothing_gets_no_guess() -> None:
    [error] = errors_of(changed("qqqqqq", 1))
    assert error.message == "There is no field 'qqqqqq' here."


@pytest.mark.parametrize("value", [None, {"a": 1}, [[1]], [None], {}])
def test_a_setting_that_is_a_structure_gives_one_error(value: Any) -> None:
    [error] = errors_of(changed("domains.0.params", {"min_digits": value}))
    assert error.path == "domains.0.params.min_digits"
    assert error.message == "Must be text, a number, true or false, or a list of these."


def test_a_bad_item_does_not_also_make_the_list_too_short() -> None:
    data = changed("stages", [{"type": "sft", "steps": 0}])
    assert [error.path for error in errors_of(data)] == ["stages.0.steps"]


def test_several_errors_are_all_reported() -> None:
    data = changed("seed", -1)
    data["domains"][0]["weight"] = -1
    data["reward"]["root"]["terms"][1]["node"]["tags"] = ["No"]
    assert [error.path for error in errors_of(data)] == [
        "domains.0.weight",
        "reward.root.terms.1.node.tags.0",
        "seed",
    ]


@pytest.mark.parametrize("depth", [9, 60, 5_000])
def test_a_bottomless_reward_is_one_error(depth: int) -> None:
    node: dict[str, Any] = {"type": "format"}
    for _ in range(depth):
        node = {"type": "weighted_sum", "terms": [{"weight": 1, "node": node}]}
    [error] = errors_of(document() | {"reward": {"root": node}})
    assert error == ("reward.root", "Rewards must not be nested more than 8 deep.")
    while "terms" in node:  # take the tower down step by step: freeing it whole would recurse
        node = node.pop("terms")[0].pop("node")


def test_a_reward_as_deep_as_allowed_is_taken() -> None:
    node: dict[str, Any] = {"type": "format"}
    for _ in range(7):
        node = {"type": "weighted_sum", "terms": [{"weight": 1, "node": node}]}
    data = document() | {"reward": {"root": node}}
    data["evaluation"]["success_reward"] = "format"
    assert RunSpec.model_validate(data).reward.root.type == "weighted_sum"


@pytest.mark.parametrize("value", ["x" * 10_000, list(range(10_000)), {"k" * 5_000: "v" * 5_000}])
def test_a_huge_value_is_not_repeated_in_the_message(value: Any) -> None:
    [error] = errors_of(changed("seed", value))
    assert len(error.message) < 120


@pytest.mark.parametrize("data", [None, 5, "spec", [], {}])
def test_what_is_no_spec_at_all(data: Any) -> None:
    assert all(error.message.endswith(".") for error in errors_of(data))


def test_every_pattern_is_told_in_words() -> None:
    """A new pattern without words would be shown to people as a regular expression."""
    found: set[str] = set()

    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            found.update(v for k, v in schema.items() if k == "pattern" and isinstance(v, str))
            schema = list(schema.values())
        for part in schema if isinstance(schema, list) else ():
            walk(part)

    walk(RunSpec.model_json_schema())
    assert found == set(PATTERN_WORDS)


def test_a_name_of_another_form() -> None:
    [error] = errors_of(changed("domains.0.name", "Math"))
    assert error.message.startswith("Must be lower-case letters, digits, _ and -, with / between")
    assert error.message.endswith("; got 'Math'.")
