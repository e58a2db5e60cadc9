"""Take rollout groups into the database, hide those of an abandoned attempt, forget a run's.

Called by `webapp.lifecycle` inside its own transaction. What would surprise: PostgreSQL's text
cannot hold NUL, and a byte-level model does write it, so the index shows the symbol ␀ instead;
the rollout file keeps the byte.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from training_core.contract.rollouts import RewardScore, RolloutGroupRecord, RolloutRecord
from webapp.rollouts.models import Rollout, RolloutGroup

BATCH = 500
_UNSTORABLE = {0: "␀", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


def storable(text: str) -> str:
    """Text that PostgreSQL can hold: NUL and lone surrogates as visible signs."""
    return text.translate(_UNSTORABLE)


def add_groups(run_id: UUID, attempt: int, records: Sequence[RolloutGroupRecord]) -> int:
    """Store the groups that are not there yet; returns how many were new.

    Idempotent on (run, attempt, group_id). The caller's transaction holds the run's row, so that
    two ingests of one run never meet here.
    """
    wanted = {storable(record.group_id): record for record in records}
    known = set(
        RolloutGroup.objects.filter(
            run_id=run_id, attempt=attempt, group_id__in=list(wanted)
        ).values_list("group_id", flat=True)
    )
    fresh = [record for group_id, record in wanted.items() if group_id not in known]
    groups = RolloutGroup.objects.bulk_create(
        [_group_row(run_id, attempt, record) for record in fresh], batch_size=BATCH
    )
    Rollout.objects.bulk_create(
        [
            _rollout_row(group, rollout)
            for group, record in zip(groups, fresh, strict=True)
            for rollout in record.rollouts
        ],
        batch_size=BATCH,
    )
    return len(fresh)


def supersede_after(run_id: UUID, attempt: int, step: int) -> int:
    """Hide the groups of earlier attempts beyond the step that `attempt` starts from."""
    return RolloutGroup.objects.filter(
        run_id=run_id, attempt__lt=attempt, step__gt=step, superseded=False
    ).update(superseded=True)


def delete_run(run_id: UUID) -> None:
    """Forget all rollouts of a run; its directory is the caller's business."""
    Rollout.objects.filter(group__run_id=run_id).delete()
    RolloutGroup.objects.filter(run_id=run_id).delete()


def _group_row(run_id: UUID, attempt: int, record: RolloutGroupRecord) -> RolloutGroup:
    """The row of one group, counts taken from its rollouts."""
    rollouts = record.rollouts
    return RolloutGroup(
        run_id=run_id,
        attempt=attempt,
        group_id=storable(record.group_id),
        step=record.step,
        stage=record.stage,
        kind=record.kind,
        domain=record.domain,
        prompt_id=storable(record.prompt_id),
        messages=[
            {"role": turn.role, "content": storable(turn.content)} for turn in record.messages
        ],
        prompt_text=storable(record.messages[-1].content if record.messages else ""),
        prompt_tokens=record.prompt_tokens,
        answer=storable(record.answer),
        reward_mean=record.reward_mean,
        reward_std=record.reward_std,
        zero_spread=record.zero_spread,
        size=len(rollouts),
        passed=sum(rollout.passed is True for rollout in rollouts),
        unscored=sum(rollout.reward is None for rollout in rollouts),
        truncated=sum(rollout.finish_reason == "length" for rollout in rollouts),
    )


def _rollout_row(group: RolloutGroup, record: RolloutRecord) -> Rollout:
    """The row of one completion; numbers that JSON cannot hold become words in `scores`."""
    scores: list[dict[str, Any]] = [
        json.loads(score.model_copy(update=_storable_words(score)).model_dump_json())
        for score in record.scores
    ]
    return Rollout(
        group=group,
        index=record.index,
        completion=storable(record.completion),
        text=storable(record.text),
        tokens=record.tokens,
        finish_reason=record.finish_reason,
        scores=scores,
        reward=record.reward,
        advantage=record.advantage,
        passed=record.passed,
    )


def _storable_words(score: RewardScore) -> dict[str, str]:
    """A score's texts as the database can hold them."""
    return {"name": storable(score.name), "explanation": storable(score.explanation)}
