"""Idempotency-Key: a request that is sent twice is done once and answered twice alike.

Called by the operations that make something. The claim of a key is committed before the deed, the
deed and its answer together: a crash between them leaves a claim that the next try takes over, and
what it repeats was rolled back. Keys are kept a day, as the draft standard suggests
(draft-ietf-httpapi-idempotency-key-header).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja.responses import NinjaJSONEncoder
from pydantic import BaseModel

from webapp.accounts.models import User
from webapp.api.models import RememberedAnswer
from webapp.api.problems import Problem

KEY_FORM = re.compile(r"[0-9a-zA-Z_.:-]{1,64}")
KEPT_FOR = timedelta(days=1)
GIVEN_UP_AFTER = timedelta(minutes=10)
"""Longer than the largest upload takes to be stored."""
HEADER = "Idempotency-Key"


def answer_once(
    request: HttpRequest,
    user: User,
    hash_content: Callable[[], str],
    deed: Callable[[], BaseModel],
) -> HttpResponse:
    """201 with the deed's result, or the answer that the same request got before.

    `hash_content` gives what stands for the body; it is called only where a key was sent. Raises
    Problem: 422 for a key that is none or that another request used, 409 while the same request is
    still being worked on. Without the header the deed is simply done.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return _created(_plain(deed()))
    if not KEY_FORM.fullmatch(key):
        raise Problem(422, f"{HEADER} must be 1 to 64 letters, digits, or any of `-_.:`.")
    claim = _claim(user, key, _fingerprint(request, hash_content()))
    if claim.status is not None:
        return _created(claim.body, replayed=True)
    try:
        with transaction.atomic():
            body = _plain(deed())
            RememberedAnswer.objects.filter(pk=claim.pk).update(status=201, body=body)
    except BaseException:
        RememberedAnswer.objects.filter(pk=claim.pk, status=None).delete()
        raise
    return _created(body)


def hash_body(request: HttpRequest) -> str:
    """What stands for a body that is the same each time it is sent."""
    return hashlib.sha256(request.body).hexdigest()


@transaction.atomic
def _claim(user: User, key: str, fingerprint: str) -> RememberedAnswer:
    """The row of the key: fresh, taken over, or with its answer. Raises Problem."""
    now = timezone.now()
    RememberedAnswer.objects.filter(begun_at__lt=now - KEPT_FOR).delete()
    row, is_new = RememberedAnswer.objects.select_for_update().get_or_create(
        user=user, key=key, defaults={"fingerprint": fingerprint}
    )
    if is_new:
        return row
    if row.fingerprint != fingerprint:
        raise Problem(
            422,
            f"The {HEADER} {key} was used for another request; send a new key with a new request.",
        )
    if row.status is None:
        if row.begun_at > now - GIVEN_UP_AFTER:
            raise Problem(
                409,
                "The same request is still being worked on; ask again in a moment.",
                headers={"Retry-After": "2"},
            )
        row.begun_at = now
        row.save(update_fields=["begun_at"])
    return row


def _fingerprint(request: HttpRequest, content_hash: str) -> str:
    parts = [request.method or "", request.get_full_path(), content_hash]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _plain(result: BaseModel) -> Any:
    """The result as JSON that the database can keep."""
    return json.loads(json.dumps(result.model_dump(), cls=NinjaJSONEncoder, allow_nan=False))


def _created(body: Any, *, replayed: bool = False) -> HttpResponse:
    response = HttpResponse(
        json.dumps(body, allow_nan=False), status=201, content_type="application/json"
    )
    if replayed:
        response["Idempotency-Replayed"] = "true"
    return response
