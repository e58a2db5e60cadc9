"""What a run made: console, completions, checkpoints, evaluations."""

from __future__ import annotations

from typing import Annotated, Literal

from django.db.models import Exists, OuterRef, Q
from django.http import Http404, HttpRequest
from ninja import Path, Query, Router

from webapp.api.auth import BearerToken, user_of
from webapp.api.outputs.results import (
    CheckpointList,
    EvaluationList,
    GroupPage,
    GroupWithRollouts,
    LogPiece,
    checkpoint_out,
    evaluation_out,
    group_out,
    group_with_rollouts,
)
from webapp.api.params import LARGEST, LARGEST_ID, Cursor, Limit, RunNumber, Text
from webapp.api.scopes import Scope
from webapp.rollouts.browse import OUTCOMES
from webapp.rollouts.models import Rollout, RolloutGroup
from webapp.runs.access import get_run_for_user
from webapp.runs.console import read_text_from

router = Router(tags=["Results"], auth=BearerToken(Scope.READ))
Outcome = Literal["", "passed", "failed", "mixed", "zero_spread", "truncated", "unscored"]


@router.get(
    "/runs/{number}/logs", response=LogPiece, operation_id="get_logs", summary="Read the console"
)
def get_logs(
    request: HttpRequest,
    number: RunNumber,
    attempt: Annotated[
        int | None, Query(ge=0, le=LARGEST, description="Attempt; the newest when left out.")
    ] = None,
    offset: Annotated[
        int, Query(ge=0, le=LARGEST_ID, description="Byte to begin at: `end` of the piece before.")
    ] = 0,
) -> LogPiece:
    """Whole lines of the trainer's console after a byte offset, at most 256 KiB a piece."""
    run = get_run_for_user(user_of(request), number)
    wanted = run.attempt if attempt is None else attempt
    if wanted > run.attempt:
        raise Http404(f"Run #{number} has no attempt {wanted}.")
    piece = read_text_from(run.run_dir.console_file(wanted), offset)
    return LogPiece(attempt=wanted, **piece._asdict())


@router.get(
    "/runs/{number}/rollouts",
    response=GroupPage,
    operation_id="list_rollouts",
    summary="Find rollout groups",
)
def list_rollouts(
    request: HttpRequest,
    number: RunNumber,
    kind: Annotated[Literal["", "train", "evaluate"], Query(description="Of which kind.")] = "",
    step: Annotated[int | None, Query(ge=0, le=LARGEST_ID, description="Of one step.")] = None,
    domain: Annotated[Text, Query("", description="Of one domain.")] = "",
    outcome: Annotated[Outcome, Query(description="With which outcome.")] = "",
    q: Annotated[Text, Query("", description="Words of prompt, answer or a completion.")] = "",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> GroupPage:
    """Groups of completions in the order in which they were recorded."""
    run = get_run_for_user(user_of(request), number)
    groups = RolloutGroup.objects.filter(run=run, superseded=False, pk__gt=cursor or 0)
    exact = {"kind": kind, "domain": domain}
    groups = groups.filter(**{name: value for name, value in exact.items() if value})
    if step is not None:
        groups = groups.filter(step=step)
    if outcome:
        groups = groups.filter(OUTCOMES[outcome][1])
    if q:
        said = Rollout.objects.filter(group=OuterRef("pk"), completion__icontains=q)
        groups = groups.filter(Q(prompt_text__icontains=q) | Q(answer__icontains=q) | Exists(said))
    found = list(groups.order_by("pk")[: limit + 1])
    following = found[limit - 1].pk if len(found) > limit else None
    return GroupPage(items=[group_out(group) for group in found[:limit]], next_cursor=following)


@router.get(
    "/runs/{number}/rollouts/{group}",
    response=GroupWithRollouts,
    operation_id="get_rollouts",
    summary="Get a rollout group",
)
def get_rollouts(
    request: HttpRequest,
    number: RunNumber,
    group: Annotated[int, Path(ge=1, le=LARGEST_ID, description="Id of the group.")],
) -> GroupWithRollouts:
    """A prompt with all its completions, their scores with explanations, their advantages."""
    run = get_run_for_user(user_of(request), number)
    found = RolloutGroup.objects.filter(run=run, pk=group).first()
    if found is None:
        raise Http404(f"Run #{number} has no rollout group {group}.")
    return group_with_rollouts(found)


@router.get(
    "/runs/{number}/checkpoints",
    response=CheckpointList,
    operation_id="list_checkpoints",
    summary="List checkpoints",
)
def list_checkpoints(request: HttpRequest, number: RunNumber) -> CheckpointList:
    """All that the run saved; those that retention removed say when."""
    run = get_run_for_user(user_of(request), number)
    return CheckpointList(items=[checkpoint_out(row) for row in run.checkpoints.order_by("-step")])


@router.get(
    "/runs/{number}/evaluations",
    response=EvaluationList,
    operation_id="list_evaluations",
    summary="List evaluations",
)
def list_evaluations(request: HttpRequest, number: RunNumber) -> EvaluationList:
    """Held-out results with 95 % intervals, by domain."""
    run = get_run_for_user(user_of(request), number)
    return EvaluationList(items=[evaluation_out(row) for row in run.evaluations.all()])
