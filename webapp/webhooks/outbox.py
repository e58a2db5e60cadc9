"""Write down what is to be told, in the transaction of what happened.

Called by `webapp.runs.moves` with a run in its new state. A rolled back move leaves no message; a
committed one has all of its messages, whatever the broker does.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.utils import timezone

from webapp.accounts.roles import Right, may
from webapp.runs.models import Run
from webapp.webhooks.dispatch import send_delivery
from webapp.webhooks.kinds import KINDS, TEST
from webapp.webhooks.models import Delivery, Endpoint


def note_move(run: Run) -> None:
    """Messages to the endpoints of its owner and of its project that want to know of its state.

    An owner who has left the project learns nothing more of it, nor does who was its admin.
    """
    kind = f"run.{run.state}"
    if kind not in KINDS:
        return
    whose = Q(project=None, user_id=run.owner_id) | Q(project_id=run.project_id)
    wanted = Endpoint.objects.filter(whose, disabled_at=None, kinds__contains=[kind])
    for endpoint in wanted.select_related("user"):
        right = Right.VIEW if endpoint.project_id is None else Right.MANAGE
        if may(endpoint.user, right, run.project):
            _write(endpoint, kind, _facts(run))


def note_test(endpoint: Endpoint) -> Delivery:
    """A message that is about nothing, to try an endpoint."""
    return _write(endpoint, TEST, {"text": "This is a test from Temper."})


def _write(endpoint: Endpoint, kind: str, data: dict[str, Any]) -> Delivery:
    now = timezone.now()
    payload = {"type": kind, "timestamp": now.isoformat(), "data": data}
    delivery = Delivery.objects.create(endpoint=endpoint, kind=kind, payload=payload)
    send_delivery(delivery.pk)
    return delivery


def _facts(run: Run) -> dict[str, Any]:
    """The run as the receiver gets it; `/api/v1/runs/NUMBER` has the rest."""
    return {
        "id": str(run.pk),
        "number": run.number,
        "name": run.name,
        "project": run.project.slug,
        "state": run.state,
        "cause": run.cause,
        "message": run.message,
        "advice": run.advice,
        "step": run.step,
        "total_steps": run.total_steps,
        "latest": run.latest,
    }
