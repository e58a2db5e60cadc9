"""From prompts to scored groups, and the seeds of their streams."""

from __future__ import annotations

from collections.abc import Sequence

from tests.training_core.algorithms.rollout_groups import QUESTION, make_group, make_rollout
from tests.training_core.models.policies import build_policy
from training_core.contract.domains import Message
from training_core.contract.rewards import CorrectnessReward, LengthReward, RewardSpec
from training_core.domains.item import PromptItem
from training_core.models.chat import prompt_ids
from training_core.models.policy import Policy
from training_core.rollouts.collect import PromptRequest, collect_groups, score_groups
from training_core.rollouts.engine import GenerationSettings
from training_core.rollouts.seeds import stream_seed

SETTINGS = GenerationSettings(6, 1.0, 96)


def item(prompt_id: str = "p", content: str = "2 + 3 =", answer: str = "5") -> PromptItem:
    messages = (Message(role="user", content=content),)
    return PromptItem(prompt_id, "math/add", messages, content, answer)


def test_groups_come_in_order_with_their_ids(policy: Policy) -> None:
    prompts = [
        PromptRequest("g1", item("a", "one"), (1, 2, 3)),
        PromptRequest("g2", item("b", "two, longer"), (4,)),
    ]
    groups = collect_groups(policy, prompts, SETTINGS, lambda *_: None)
    assert [group.group_id for group in groups] == ["g1", "g2"]
    assert [len(group.rollouts) for group in groups] == [3, 1]
    for group, prompt in zip(groups, prompts, strict=True):
        assert group.item is prompt.item
        assert group.prompt_ids == prompt_ids(policy.tokenizer, prompt.item.messages)
        assert all(rollout.reward is None and not rollout.scores for rollout in group.rollouts)


def test_two_prompts_of_the_same_text_stay_two_groups(policy: Policy) -> None:
    prompts = [PromptRequest(name, item(), (seed,)) for name, seed in (("g1", 1), ("g2", 2))]
    groups = collect_groups(policy, prompts, SETTINGS, lambda *_: None)
    first, second = (group.rollouts[0].completion.token_ids for group in groups)
    assert first != second


def test_raw_text_keeps_special_tokens_and_text_leaves_them_out() -> None:
    """Any token ends here, so the completion is one token; special ones have ids below 6."""
    policy = build_policy(eos_ids=tuple(range(262)))
    prompts = [PromptRequest("g", item(), tuple(range(3000)))]
    (group,) = collect_groups(policy, prompts, GenerationSettings(4, 1.5, 3000), lambda *_: None)
    special = [one for one in group.rollouts if one.completion.token_ids[0] < 6]
    assert special
    for rollout in special:
        (token,) = rollout.completion.token_ids
        assert rollout.raw == policy.tokenizer.convert_ids_to_tokens(token)
        assert rollout.text == ""
    plain = next(one for one in group.rollouts if one.completion.token_ids[0] >= 6)
    assert plain.raw == plain.text != ""


def test_rewards_are_given_rollout_by_rollout() -> None:
    spec = RewardSpec(root=LengthReward(target_tokens=1, limit_tokens=3))
    groups = [
        make_group("a", [make_rollout([5]), make_rollout([5, 6])]),
        make_group("b", [make_rollout([5, 6, 7])]),
    ]
    told: list[int] = []
    scored = score_groups(spec, groups, told.append)
    assert [r.reward for group in scored for r in group.rollouts] == [0.0, -0.5, -1.0]
    assert [r.value("length") for group in scored for r in group.rollouts] == [0.0, -0.5, -1.0]
    assert told == [2, 3]


def test_a_reward_that_fails_leaves_the_rollout_unscored() -> None:
    spec = RewardSpec(root=CorrectnessReward(answer_tag=""))
    group = make_group("a", [make_rollout([5])])
    no_number = PromptItem("p", "d", QUESTION, "2 + 3 =", answer="no number")
    (scored,) = score_groups(
        spec, [type(group)("a", no_number, (1,), group.rollouts)], lambda _: None
    )
    (rollout,) = scored.rollouts
    assert rollout.reward is None
    assert rollout.value("correctness") is None
    assert rollout.scores[0].status == "gold_bad"


def test_streams_differ_by_seed_and_by_every_part_of_their_name() -> None:
    names = [(0, "rollout", 1, 2, 3), (1, "rollout", 1, 2, 3), (0, "rollout", 12, 3), (0, "r", 1),
             (0, "rollout", 1, 23), (0, "rollout", 1, 3, 2)]  # fmt: skip
    seeds = [stream_seed(*name) for name in names]  # type: ignore[arg-type]
    assert len(set(seeds)) == len(names)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_stream_keeps_its_seed_for_ever() -> None:
    """Another value would make every older run impossible to resume exactly."""
    assert stream_seed(0, "rollout", 1, 0, 0) == 3615491839805947646


def test_who_watches_the_tokens_sees_each_and_changes_none(policy: Policy) -> None:
    prompts = [
        PromptRequest("g1", item("a", "one"), (1, 2, 3)),
        PromptRequest("g2", item("b", "two, longer"), (4,)),
    ]
    seen: dict[tuple[int, int], list[int]] = {}

    def watch(places: Sequence[tuple[int, int]], tokens: Sequence[int]) -> None:
        for place, token in zip(places, tokens, strict=True):
            seen.setdefault(place, []).append(token)

    watched = collect_groups(policy, prompts, SETTINGS, lambda *_: None, on_tokens=watch)
    assert watched == collect_groups(policy, prompts, SETTINGS, lambda *_: None)
    found = {
        (place, index): list(rollout.completion.token_ids)
        for place, group in enumerate(watched)
        for index, rollout in enumerate(group.rollouts)
    }
    assert seen == found
