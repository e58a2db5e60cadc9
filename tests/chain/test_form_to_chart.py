"""From the posted form to the JSON that a chart draws, through every process in between."""

from __future__ import annotations

import base64
import struct
from typing import Any

import yaml
from django.test import Client
from django.urls import reverse

from tests.webapp.browser_form import submitted
from tests.workers.conftest import StartCelery, state_of, wait_for
from training_core.contract.spec import RunSpec
from webapp.accounts.models import User
from webapp.evaluation.models import EvalRun
from webapp.rollouts.models import Rollout
from webapp.runs.models import Checkpoint, Run


def numbers(document: dict[str, Any], spec: Any) -> list[float]:
    """A column of the answer: little-endian float64 in base64."""
    raw = base64.b64decode(document["arrays"][spec] if isinstance(spec, int) else spec)
    return list(struct.unpack(f"<{len(raw) // 8}d", raw))


def test_a_posted_form_becomes_a_curve(start_worker: StartCelery, alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    page = browser.get(reverse("runs:launch"), {"preset": "tiny-model"})
    form = {**submitted(page.content.decode()), "action": "show:yaml"}
    text = submitted(browser.post(reverse("runs:launch"), form).content.decode())
    document = yaml.safe_load(text["yaml"])
    for stage in document["stages"]:
        stage["steps"] = 4
    document["checkpoint"]["interval_steps"] = 2
    document["resources"]["threads"] = 1
    posted = {**text, "yaml": yaml.safe_dump(document), "action": "launch"}

    answer = browser.post(reverse("runs:launch"), posted)

    assert answer.status_code == 302, answer.content.decode()[-2000:]
    run = Run.objects.get()
    assert RunSpec.model_validate(run.spec).total_steps == 8
    start_worker("one", app="workers.celery_app")
    wait_for(lambda: state_of(run) == "succeeded", "the run")
    query = {"run": str(run.pk), "key": "reward", "smooth": "0"}
    curve = browser.get(reverse("metrics:curves"), query).json()
    [drawn] = curve["curves"]
    assert drawn["n_total"] == 4
    rl = document["stages"][1]
    rollouts = Rollout.objects.filter(group__run=run, group__kind="train")
    assert rollouts.count() == 4 * rl["prompts_per_step"] * rl["group_size"]
    assert list(
        EvalRun.objects.filter(run=run).order_by("step").values_list("step", flat=True)
    ) == [0, 4, 8]
    assert Checkpoint.objects.filter(run=run, step=8).exists()
    assert browser.get(reverse("runs:rollouts", args=[run.number])).status_code == 200
