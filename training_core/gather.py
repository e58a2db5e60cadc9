"""The groups of an rl step: prompts drawn, completions sampled and scored.

Called by `training_core.train`. With dynamic sampling (Yu et al. 2025, DAPO, arXiv 2503.14476) a
group whose rewards are all equal is replaced by another prompt's, for a few rounds; what comes out
too much waits for the next step. No group is lost: sampled = used + dead + carried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from training_core.algorithms.advantages import earned_by
from training_core.contract.stages import RlStage
from training_core.curriculum.mix import MixState, Pick, next_prompts
from training_core.losses.advantages import has_spread
from training_core.models.chat import prompt_ids
from training_core.monitors.phase import phase
from training_core.rollouts.collect import (
    PromptRequest,
    collect_groups,
    decode_rollout,
    score_groups,
)
from training_core.rollouts.engine import Completion, GenerationSettings, rows_that_fit
from training_core.rollouts.seeds import stream_seed
from training_core.session import Session, Stopwatch
from training_core.state import CarriedGroup, CarriedRollout, carry
from training_core.types import Rollout, RolloutGroup

MOST_ROWS_CPU, MOST_ROWS_GPU = 96, 512
KV_BYTES_CPU, KV_BYTES_GPU = 2 << 30, 8 << 30
LEAST_YIELD = 0.25
"""Share of useful groups below which dynamic sampling no longer asks for more at once."""


@dataclass
class Gathered:
    """What a step has to learn from, and what became of the rest."""

    mix: MixState
    """The mix after the prompts of the step."""
    used: list[RolloutGroup] = field(default_factory=list)
    dead: list[RolloutGroup] = field(default_factory=list)
    """Sampled, and left out because all rewards are equal."""
    carried: tuple[CarriedGroup, ...] = ()
    """Sampled too much; for the next step."""
    stale: frozenset[str] = frozenset()
    """Ids of used groups that the step before has sampled."""
    rounds: int = 0
    sampled: int = 0
    """Groups sampled in this step."""
    sampled_tokens: int = 0

    @property
    def recorded(self) -> list[RolloutGroup]:
        """Groups whose fate this step has decided."""
        return [*self.used, *self.dead]

    def metrics(self) -> dict[str, float]:
        """How dynamic sampling went."""
        return {
            "dynamic_sampling/rounds": float(self.rounds),
            "dynamic_sampling/dead_groups": float(len(self.dead)),
            "dynamic_sampling/carried_groups": float(len(self.carried)),
        }

    def speed(self, watch: Stopwatch) -> dict[str, float]:
        """How fast was sampled; nothing where the step before has sampled everything."""
        if self.sampled == 0:
            return {}
        seconds = watch.values["time/rollout"]
        return {"perf/rollout_tokens_per_s": self.sampled_tokens / seconds}


def gather_groups(session: Session, spec: RlStage, step: int, watch: Stopwatch) -> Gathered:
    """The groups of a step. May raise Interrupted between two tokens."""
    algorithm, wanted = spec.algorithm, spec.prompts_per_step
    found = Gathered(session.state.mix)
    if not algorithm.dynamic_sampling:
        found.used, _ = _sample(session, spec, step, found, wanted, watch)
        return found
    waiting = [_restore_group(session, carried) for carried in session.state.carried]
    found.stale = frozenset(group.group_id for group in waiting)
    found.used = waiting
    picks: dict[str, Pick] = {}
    while len(found.used) < wanted and found.rounds < algorithm.most_sampling_rounds:
        n = _groups_to_ask_for(wanted - len(found.used), found, wanted)
        groups, drawn = _sample(session, spec, step, found, n, watch)
        picks |= drawn
        for group in groups:
            if _is_useful(spec, group):
                found.used.append(group)
            else:
                found.dead.append(_as_dead(group))
    surplus = found.used[wanted:]
    found.used = found.used[:wanted]
    found.carried = tuple(carry(group, picks[group.group_id].prompt_index) for group in surplus)
    return found


def _restore_group(session: Session, carried: CarriedGroup) -> RolloutGroup:
    """A group of the step before, as it was then."""
    item = session.sources[carried.domain].prompt(carried.prompt_index)
    return RolloutGroup(
        carried.group_id,
        item,
        prompt_ids(session.policy.tokenizer, item.messages),
        tuple(_restore_rollout(session, rollout) for rollout in carried.rollouts),
    )


def _restore_rollout(session: Session, carried: CarriedRollout) -> Rollout:
    completion = Completion(
        carried.token_ids, carried.logprobs, carried.finish_reason, carried.entropy_nats
    )
    rollout = decode_rollout(session.policy, completion)
    return replace(rollout, scores=carried.scores, reward=carried.reward)


def _is_useful(spec: RlStage, group: RolloutGroup) -> bool:
    """Whether the rewards that train, penalties included, differ inside a group."""
    limit = spec.sampling.max_new_tokens
    earnings = [earned_by(spec.algorithm, rollout, limit) for rollout in group.rollouts]
    return has_spread([earned.reward for earned in earnings if earned is not None])


def _as_dead(group: RolloutGroup) -> RolloutGroup:
    """A group that nothing is learnt from."""
    return replace(
        group,
        rollouts=tuple(
            rollout if rollout.reward is None else replace(rollout, advantage=0.0)
            for rollout in group.rollouts
        ),
    )


def _groups_to_ask_for(missing: int, found: Gathered, wanted: int) -> int:
    """As many as should give what is missing, by what this step has seen; at most a whole step."""
    if found.sampled == 0:
        return missing
    useful = max(LEAST_YIELD, 1.0 - len(found.dead) / found.sampled)
    return min(wanted, math.ceil(missing / useful))


def _sample(
    session: Session, spec: RlStage, step: int, found: Gathered, n: int, watch: Stopwatch
) -> tuple[list[RolloutGroup], dict[str, Pick]]:
    """One round: n more groups, scored, and which prompt each belongs to."""
    found.mix, picks = next_prompts(found.mix, session.spec.domains, n)
    requests = [
        _request(session, spec, step, found.sampled + place, pick)
        for place, pick in enumerate(picks)
    ]
    groups = _collect(session, spec, step, requests)
    watch.lap("rollout")
    groups = _score(session, spec, step, groups)
    watch.lap("reward")
    found.rounds += 1
    found.sampled += n
    found.sampled_tokens += sum(rollout.tokens for group in groups for rollout in group.rollouts)
    return groups, {request.group_id: pick for request, pick in zip(requests, picks, strict=True)}


def _request(session: Session, spec: RlStage, step: int, place: int, pick: Pick) -> PromptRequest:
    """A prompt of the step, with seeds of its own for each completion."""
    seed = session.spec.seed
    return PromptRequest(
        f"t{step:06d}-{place:05d}",
        session.sources[pick.domain].prompt(pick.prompt_index),
        tuple(stream_seed(seed, "rollout", step, place, index) for index in range(spec.group_size)),
    )


def _collect(
    session: Session, spec: RlStage, step: int, requests: Sequence[PromptRequest]
) -> list[RolloutGroup]:
    """One group for each prompt, without scores."""
    total = len(requests) * spec.group_size
    with phase(
        session.log, "rollout", step=step, stage=spec.name, total=total, unit="rollouts"
    ) as report:

        def on_progress(done: int, tokens: int) -> None:
            report.update(done, tokens=tokens)
            session.steering.check()

        settings = generation_settings(session, spec)
        return collect_groups(session.policy, requests, settings, on_progress)


def generation_settings(session: Session, spec: RlStage) -> GenerationSettings:
    """As many rows at once as memory holds in the worst case."""
    policy = session.policy
    cuda = policy.device.type == "cuda"
    rows = rows_that_fit(
        policy.model.config,
        tokens=min(policy.facts.context_tokens, 1024 + spec.sampling.max_new_tokens),
        memory_bytes=KV_BYTES_GPU if cuda else KV_BYTES_CPU,
        dtype_bytes=4,
    )
    return GenerationSettings(
        spec.sampling.max_new_tokens,
        spec.sampling.temperature,
        min(rows, MOST_ROWS_GPU if cuda else MOST_ROWS_CPU),
    )


def _score(
    session: Session, spec: RlStage, step: int, groups: list[RolloutGroup]
) -> list[RolloutGroup]:
    """The groups with their rewards."""
    total = sum(len(group.rollouts) for group in groups)
    with phase(
        session.log, "reward", step=step, stage=spec.name, total=total, unit="rollouts"
    ) as report:
        return score_groups(session.spec.reward, groups, report.update)
