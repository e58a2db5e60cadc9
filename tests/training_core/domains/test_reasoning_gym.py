from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import reasoning_gym
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training_core.domains.specs import addition, opened
from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.rewards import CorrectnessReward, FormatReward, RewardSpec
from training_core.domains.generator_stream import DRAWS, is_reserved
from training_core.domains.sources import validate_answers, validate_domain
from training_core.failures import BadData


def test_a_prompt_is_the_filled_template_behind_the_system_turn() -> None:
    spec = addition(system_prompt="Be brief.", question_template="Q: {question}\nA:")
    item = opened(spec).prompt(0)
    assert [m.role for m in item.messages] == ["system", "user"]
    assert item.messages[1].content == f"Q: {item.question}\nA:"
    assert item.domain == "math/add"
    left, right = item.question.removeprefix("Calculate ").removesuffix(".").split(" + ")
    assert item.answer == str(int(left) + int(right))
    assert opened(spec).demonstration(item) == f"<answer>{item.answer}</answer>"


def test_an_item_can_be_made_again_from_its_metadata() -> None:
    spec = addition()
    for item in [opened(spec).prompt(77), opened(spec).held_out()[5]]:
        again = reasoning_gym.create_dataset(
            spec.generator, seed=item.metadata["seed"], size=DRAWS, **spec.params
        )[item.metadata["draw"]]
        assert (again["question"], again["answer"]) == (item.question, item.answer)


def test_seeds_of_both_sides_never_meet() -> None:
    source = opened(addition(), 3)
    trained = {source.prompt(index).metadata["seed"] for index in range(0, 6_400, 64)}
    held_out = {item.metadata["seed"] for item in source.held_out()}
    assert len(trained) == 100
    assert max(trained) < 2**31 - DRAWS
    assert 2**31 <= min(held_out) <= max(held_out) < 2**32 - DRAWS


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31 - 1), st.lists(st.integers(0, 5000), min_size=1, max_size=20))
def test_prompts_depend_on_seed_and_index_alone(seed: int, indices: list[int]) -> None:
    asked = opened(addition(), seed)
    straight = {index: opened(addition(), seed).prompt(index) for index in set(indices)}
    assert [asked.prompt(index) for index in indices] == [straight[index] for index in indices]


def test_seeds_and_domain_names_give_different_prompts() -> None:
    def questions(seed: int, **changes: Any) -> list[str]:
        source = opened(addition(**changes), seed)
        return [source.prompt(index).question for index in range(20)]

    assert questions(0) == questions(0)
    assert questions(0) != questions(1)
    assert questions(0) != questions(0, name="math/add-2")


def test_held_out_items_are_the_same_for_every_seed_and_all_different() -> None:
    held_out = opened(addition(), 0).held_out()
    assert held_out == opened(addition(), 12345).held_out()
    assert len({item.question for item in held_out}) == 24
    assert len({item.prompt_id for item in held_out}) == 24
    more = opened(addition(held_out_items=48), 0).held_out()
    assert more[:24] == held_out


@pytest.mark.parametrize("seed", range(5))
def test_training_never_shows_a_held_out_question(seed: int) -> None:
    """121 questions and 2,000 prompts: without the reserve this would fail at once."""
    small = addition(max_digits=1)
    held_out = {item.question for item in opened(small).held_out()}
    prompts = [opened(small, seed).prompt(index).question for index in range(300)]
    assert not held_out & set(prompts)
    assert len(set(prompts)) > 60


def test_no_other_domain_or_setting_trains_on_a_held_out_question() -> None:
    held_out = {item.question for item in opened(addition(max_digits=1)).held_out()}
    wider = opened(addition(name="math/wider", held_out_items=2), 9)
    assert not held_out & {wider.prompt(index).question for index in range(2_000)}


def test_training_follows_the_generator_on_what_is_not_reserved() -> None:
    """About a quarter is held back; the rest comes as often as the generator makes it."""
    source = opened(addition(max_digits=1))
    counts = Counter(source.prompt(index).question for index in range(3_000))
    assert not any(is_reserved(question) for question in counts)
    assert max(counts.values()) < 4 * 3_000 / len(counts)


def test_about_a_quarter_of_questions_is_reserved_whatever_their_white_space() -> None:
    texts = [f"Calculate {a} + {b}." for a in range(60) for b in range(60)]
    share = sum(map(is_reserved, texts)) / len(texts)
    assert 0.22 < share < 0.28
    assert all(is_reserved(t) == is_reserved(f" {t.replace(' ', '  ')}\n") for t in texts[:200])


def test_too_many_held_out_items_are_refused_at_the_field_and_in_the_trainer() -> None:
    greedy = addition(max_digits=1, held_out_items=90)
    [error] = validate_domain(greedy)
    assert error.path == "held_out_items"
    assert "90 held-out items were asked for" in error.message
    most = int(error.message.rsplit("ask for at most ", 1)[1].rstrip("."))
    assert 25 <= most <= 40
    assert validate_domain(addition(max_digits=1, held_out_items=most)) == []
    with pytest.raises(BadData, match="held-out items were asked for") as caught:
        opened(greedy).held_out()
    assert caught.value.advice


def test_settings_that_only_fail_when_sampled_are_found_before_launch() -> None:
    ten = {"min_terms": 1, "max_terms": 1, "min_digits": 1, "max_digits": 1}
    few = ReasoningGymDomain(name="few", generator="chain_sum", params=ten, held_out_items=8)
    [error] = validate_domain(few)
    assert error.path == "held_out_items"
    huge = addition(params={**addition().params, "max_digits": 100_000, "allow_parentheses": True})
    [error] = validate_domain(huge)
    assert error.path == "params"
    assert "failed 20 times in a row" in error.message


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"generator": "basic_aritmetic"}, "generator", "Did you mean 'basic_arithmetic'"),
        ({"generator": "zzzzzzz"}, "generator", "There is no generator 'zzzzzzz'."),
        ({"generator": "composite"}, "generator", "only mixes other generators"),
        ({"generator": "codeio"}, "generator", "written by a language model"),
        ({"generator": "graph_color", "params": {}}, "generator", "many right answers"),
        ({"params": {"min_digit": 1}}, "params.min_digit", "Did you mean 'min_digits'"),
        ({"params": {"min_digits": "1"}}, "params.min_digits", "Must be a whole number"),
        ({"params": {"min_digits": 0}}, "params.min_digits", "must be positive"),
        ({"params": {"min_terms": 9}}, "params.min_terms", "max_terms must be >= min_terms"),
        ({"params": {"operators": ("+", "?")}}, "params.operators", "nsupported operator: ?"),
        ({"params": {"operators": "+"}}, "params.operators", "Must be a list"),
        ({"params": {"seed": 1}}, "params.seed", "set by the run itself"),
        ({"question_template": "Reply."}, "question_template", "Must contain {question}."),
    ],
)
def test_faults_stand_at_their_field(changes: dict[str, Any], path: str, words: str) -> None:
    errors = validate_domain(addition(**changes))
    assert [error.path for error in errors] == [path]
    assert words in errors[0].message
    if path != "question_template":
        with pytest.raises(BadData):
            opened(addition(**changes))


def test_several_faults_are_reported_together() -> None:
    spec = addition(generator="nope", question_template="Reply.")
    assert [error.path for error in validate_domain(spec)] == ["question_template", "generator"]


def test_answers_that_the_reward_cannot_use_are_found_before_launch() -> None:
    words = ReasoningGymDomain(name="words", generator="caesar_cipher")
    number, shape = RewardSpec(root=CorrectnessReward()), RewardSpec(root=FormatReward())
    [error] = validate_answers(words, number)
    assert error.path == "generator"
    assert "The reward 'correctness' cannot use the answers of 'caesar_cipher'" in error.message
    assert validate_answers(words, shape) == []
    assert validate_answers(addition(), number) == []


def test_a_hash_ordered_generator_wants_a_fixed_hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ReasoningGymDomain(name="ransom", generator="ransom_note")
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with pytest.raises(BadData, match="fixed hash seed") as caught:
        opened(spec)
    assert "PYTHONHASHSEED=0" in caught.value.advice
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert opened(spec).prompt(0).question
