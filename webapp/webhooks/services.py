"""Deliver what waits: claim, send, remember; again later when it failed, until it is given up.

Called by `webapp.lifecycle` in a worker of the cpu queue, for one message or for all that are due.
A try is claimed by moving its due time into the future, so two workers never send one message at
once, and a worker that dies in the middle only makes it late.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.record import record
from webapp.webhooks.models import Delivery, Endpoint
from webapp.webhooks.sending import Outcome, send

PAUSES = tuple(
    timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 3600, 4 * 3600, 12 * 3600)
)
"""Between the tries: eight of them over most of a day."""
TRY_LASTS = timedelta(seconds=60)
"""A claimed try that has not come back by then is lost with its worker."""
AT_ONCE = 50
ROUND_LASTS_S = 10.0
"""A round begins no try after that, so that slow receivers hold up no other short work."""
KEPT_FOR = timedelta(days=30)
GONE = 410
State = Delivery.State


def deliver_due() -> int:
    """Send what is due, oldest first; how many were tried. Also forgets old messages."""
    now = timezone.now()
    Delivery.objects.exclude(state=State.PENDING).filter(created_at__lt=now - KEPT_FOR).delete()
    due = due_deliveries()
    tried, end = 0, time.monotonic() + ROUND_LASTS_S
    for pk in list(due.order_by("next_try_at").values_list("pk", flat=True)[:AT_ONCE]):
        if time.monotonic() > end:
            break
        tried += deliver(pk)
    return tried


def due_deliveries() -> QuerySet[Delivery]:
    """Messages whose next try may begin now."""
    now = timezone.now()
    return _sendable(Delivery.objects.filter(state=State.PENDING, next_try_at__lte=now))


def deliver(delivery_id: UUID) -> bool:
    """One try; False when it is not due, or somebody else is at it."""
    now = timezone.now()
    if not _sendable(Delivery.objects.filter(pk=delivery_id)).exists():
        return False
    # No join in the guard: PostgreSQL would not judge a subquery again after waiting for the row.
    claimed = Delivery.objects.filter(
        pk=delivery_id, state=State.PENDING, next_try_at__lte=now
    ).update(tries=F("tries") + 1, next_try_at=now + TRY_LASTS, tried_at=now)
    if not claimed:
        return False
    delivery = Delivery.objects.select_related("endpoint").get(pk=delivery_id)
    _settle(delivery, send(delivery))
    return True


def _sendable(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Those to endpoints that are on, of people who may still sign in."""
    return deliveries.filter(endpoint__disabled_at=None, endpoint__user__is_active=True)


@transaction.atomic
def make_endpoint(user: User, wanted: dict[str, Any]) -> Endpoint:
    """A new webhook of a person, with the fields of the form."""
    endpoint = Endpoint.objects.create(user=user, **wanted)
    _note("webhook.make", endpoint, user)
    return endpoint


@transaction.atomic
def delete_endpoint(endpoint: Endpoint, actor: User) -> None:
    """Delete it and what was sent to it."""
    _note("webhook.delete", endpoint, actor)
    endpoint.delete()


def _note(action: str, endpoint: Endpoint, actor: User) -> None:
    """Its entry in the audit log: the host alone, since a path may be a secret of the receiver."""
    host = urlsplit(endpoint.url).hostname or ""
    record(
        action,
        actor=actor,
        kind="webhook",
        key=endpoint.pk,
        label=host,
        project=endpoint.project,
        after={"kinds": endpoint.kinds},
    )


@transaction.atomic
def enable(endpoint: Endpoint, actor: User) -> None:
    """Switch it on; what waits for it is sent. Doing it twice changes nothing."""
    is_off = Endpoint.objects.filter(pk=endpoint.pk).exclude(disabled_at=None)
    if is_off.update(disabled_at=None, disabled_because=""):
        endpoint.deliveries.filter(state=State.PENDING).update(next_try_at=timezone.now())
        _note("webhook.enable", endpoint, actor)


@transaction.atomic
def disable(endpoint: Endpoint, because: str, actor: User | None = None) -> None:
    """Switch it off; what waits for it stays. Without an actor a worker gave it up."""
    is_on = Endpoint.objects.filter(pk=endpoint.pk, disabled_at=None)
    if is_on.update(disabled_at=timezone.now(), disabled_because=because) and actor is not None:
        _note("webhook.disable", endpoint, actor)


@transaction.atomic
def _settle(delivery: Delivery, outcome: Outcome) -> None:
    """Remember what came of the try, unless a later try has overtaken it."""
    mine = Delivery.objects.filter(pk=delivery.pk, tries=delivery.tries, state=State.PENDING)
    known = {
        "status": outcome.status,
        "error": outcome.error,
        "milliseconds": outcome.milliseconds,
    }
    if not outcome.error:
        mine.update(state=State.DELIVERED, **known)
        return
    is_last = delivery.tries > len(PAUSES) or outcome.status == GONE
    if not is_last:
        pause = PAUSES[delivery.tries - 1]
        mine.update(next_try_at=timezone.now() + pause, **known)
    elif mine.update(state=State.GIVEN_UP, **known):
        what = "said that it is gone" if outcome.status == GONE else "failed every try for a day"
        disable(delivery.endpoint, f"Switched off: it {what}. {outcome.error}")
