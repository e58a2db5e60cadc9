"""Rollouts on disk: every group whole, in one append-only file for each step and kind.

Called by `training_core.train` and `training_core.evaluate`. A full disk costs the records of a
step, said in a notice, not the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from training_core.contract.events import Notice, RolloutKind, RolloutsWritten
from training_core.contract.rollouts import RolloutGroupRecord, RolloutRecord
from training_core.contract.rundir import RunDir
from training_core.losses.advantages import has_spread, mean_and_std
from training_core.monitors.jsonl import EventLog
from training_core.types import Rollout, RolloutGroup

Passed = Callable[[Rollout], bool | None]
"""Whether a rollout counts as success; None when unscored."""


def write_groups(
    run_dir: RunDir,
    log: EventLog,
    groups: Sequence[RolloutGroup],
    *,
    attempt: int,
    step: int,
    stage: str,
    kind: RolloutKind,
    passed: Passed,
) -> None:
    """Append groups and say where they are."""
    path = run_dir.rollout_file(attempt, kind, step)
    lines = [
        make_record(group, step=step, stage=stage, kind=kind, passed=passed).model_dump_json()
        for group in groups
    ]
    content = "".join(f"{line}\n" for line in lines).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        offset = _append(str(path), content)
    except OSError as error:
        log.emit(
            Notice,
            step=step,
            level="alarm",
            code="rollouts_not_written",
            message=f"{len(groups)} groups of rollouts could not be stored: {error}. Training goes"
            " on; free disk space.",
        )
        return
    log.emit(
        RolloutsWritten,
        step=step,
        stage=stage,
        rollout_kind=kind,
        file=str(path.relative_to(run_dir.root)),
        offset_bytes=offset,
        length_bytes=len(content),
        groups=len(groups),
    )


def make_record(
    group: RolloutGroup, *, step: int, stage: str, kind: RolloutKind, passed: Passed
) -> RolloutGroupRecord:
    """One group as it is stored."""
    rewards = [rollout.reward for rollout in group.rollouts if rollout.reward is not None]
    mean, std = mean_and_std(rewards) if rewards else (None, None)
    return RolloutGroupRecord(
        group_id=group.group_id,
        step=step,
        stage=stage,
        kind=kind,
        domain=group.item.domain,
        prompt_id=group.item.prompt_id,
        messages=group.item.messages,
        prompt_tokens=len(group.prompt_ids),
        answer=group.item.answer,
        rollouts=tuple(
            _rollout_record(index, rollout, passed(rollout))
            for index, rollout in enumerate(group.rollouts)
        ),
        reward_mean=mean,
        reward_std=std if len(rewards) > 1 else None,
        zero_spread=has_zero_spread(group),
    )


def has_zero_spread(group: RolloutGroup) -> bool:
    """Whether the scored rewards of a group are all equal, so that it teaches nothing."""
    return not has_spread([r.reward for r in group.rollouts if r.reward is not None])


def _rollout_record(index: int, rollout: Rollout, passed: bool | None) -> RolloutRecord:
    completion = rollout.completion
    return RolloutRecord(
        index=index,
        completion=rollout.raw,
        text=rollout.text,
        tokens=rollout.tokens,
        token_ids=completion.token_ids,
        logprobs=completion.logprobs,
        finish_reason=completion.finish_reason,
        scores=rollout.scores,
        reward=rollout.reward,
        advantage=rollout.advantage,
        passed=passed,
    )


def _append(path: str, content: bytes) -> int:
    """Append all bytes or none; the offset where they begin."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        offset = os.fstat(handle).st_size
        written = 0
        try:
            while written < len(content):
                written += os.write(handle, content[written:])
        except OSError:
            os.ftruncate(handle, offset)
            raise
        return offset
    finally:
        os.close(handle)
