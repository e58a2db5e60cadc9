"""A run that ends tells another program, through every process in between."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path

import pytest

from tests.webapp.webhooks.receiver import receive
from tests.workers.conftest import StartCelery, wait_for
from training_core.contract.presets import TINY_COPY
from webapp.accounts.models import User
from webapp.runs.services import launch_run
from webapp.webhooks.models import Delivery, Endpoint

SHORT_WORK = ("--queues=cpu", "--pool=threads", "--concurrency=1", "--hostname=cpu@test")


def test_a_finished_run_reaches_a_receiver_signed(
    start_celery: StartCelery,
    start_worker: StartCelery,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("TEMPER_WEBHOOK_ALLOW_PRIVATE", "true")
    warm_up, rl = TINY_COPY.spec.stages
    stages = (
        warm_up.model_copy(update={"steps": 2, "batch_size": 2}),
        rl.model_copy(update={"steps": 2, "prompts_per_step": 2, "group_size": 2}),
    )
    spec = TINY_COPY.spec.model_copy(update={"name": "told of", "stages": stages})
    with receive() as receiver:
        endpoint = Endpoint.objects.create(user=alice, url=receiver.url, kinds=["run.succeeded"])
        run = launch_run(owner=alice, spec=spec)
        start_celery("worker", *SHORT_WORK, app="workers.celery_app")
        start_worker("one", app="workers.celery_app")
        wait_for(lambda: receiver.got, "the message")
        delivered = Delivery.objects.filter(state="delivered")
        wait_for(delivered.exists, "the row that says so")
    [(headers, body)] = receiver.got
    assert json.loads(body)["data"]["number"] == run.number
    assert json.loads(body)["type"] == "run.succeeded"
    key = base64.b64decode(endpoint.secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"
    delivery = delivered.get()
    assert (str(delivery.pk), delivery.status) == (headers["webhook-id"], 204)
