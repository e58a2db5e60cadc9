"""The field's adversarial corpora through the API: configs, metric names, numbers."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.webapp.api.conftest import Program
from tests.webapp.hostile import NAMES
from tests.webapp.stories import Story, launch
from training_core.contract.presets import TINY_COPY
from webapp.accounts.models import User
from webapp.metrics.services import usable_key
from webapp.runs.models import Run

KEYS = (
    "loss",
    "reward/format",
    "val-aux/gsm8k/reward/mean@1",
    "timing(s)/gen",
    "a/b/c/d/e",
    "a//b",
    "/lead",
    "trail/",
    "..",
    "100%",
    " tab\t",
    "Loss",
    *NAMES,
)
NUMBERS = (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.797e308, 2.0**53 + 1, 0.0)


def nested(depth: int) -> dict[str, Any]:
    document: dict[str, Any] = {"x": 1}
    for _ in range(depth):
        document = {"x": document}
    return document


@pytest.mark.parametrize(
    "extra",
    [
        {"notes": "x" * 1_000_000},
        {"resources": nested(40)},
        {f"key {index}": index for index in range(5_000)},
        {"stages": [[[]]] * 1_000},
        {"奖励": {"مكافأة": "👩‍👩‍👧"}},
        {"model": {"ref": "../../../etc/passwd"}},
        {"model": {"ref": "/root/../etc"}},
        {"seed": 10**400},
        {"seed": "1e5"},
        {"checkpoint": {"interval_steps": 1e300}},
        {"domains": {"type": "dataset"}},
        {"reward": {"root": "$ref"}},
        {"spec_version": 2},
    ],
    ids=range(13),
)
def test_hostile_configs_are_refused_in_words(program: Program, extra: dict[str, Any]) -> None:
    answer = program.post("/runs", {**TINY_COPY.spec.model_dump(mode="json"), **extra})
    assert answer.status_code == 422, answer.content[:500]
    problem = answer.json()
    assert problem["errors"]
    assert all(error["message"] for error in problem["errors"])
    assert len(answer.content) < 200_000
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "text",
    [
        "name: &a [*a]",
        "name: a\nname: b",
        "name: !!python/object/apply:os.system [ls]",
        "? [a]\n: b",
        "a" * 500_000,
        "name: no\nseed: 010\n",
        "\t- x",
        "x: " + "[" * 100,
    ],
    ids=range(8),
)
def test_hostile_yaml_is_refused_in_words(program: Program, text: str) -> None:
    answer = program.send("/runs", text.encode(), "application/yaml")
    assert answer.status_code in {400, 422}
    assert answer.json()["detail"]


def test_metric_names_come_back_in_normal_form(program: Program, ada: User) -> None:
    story = Story(launch(ada)).start()
    story.tell("metrics", step=1, stage="rl", values=dict.fromkeys(KEYS, 0.5))
    at = f"/runs/{story.run.number}"
    names = {metric["name"] for metric in program.get(f"{at}/metrics").json()["items"]}
    kept = {key for name in KEYS if (key := usable_key(name)) is not None}
    assert len(kept) > 20
    assert kept <= names
    for key in kept:
        [curve] = program.get(f"{at}/curves", key=key).json()["curves"]
        assert (curve["metric"]["name"], len(curve["points"])) == (key, 1)


def test_every_number_survives(program: Program, ada: User) -> None:
    story = Story(launch(ada)).start()
    for step, value in enumerate(NUMBERS, start=1):
        story.tell("metrics", step=step, stage="rl", values={"x": value})
    [curve] = program.get(f"/runs/{story.run.number}/curves", key="x").json()["curves"]
    words = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    found = [words.get(point["value"], point["value"]) for point in curve["points"]]
    assert [repr(float(value)) for value in found] == [repr(value) for value in NUMBERS]
    lines = program.get(f"/runs/{story.run.number}/curves.csv", key="x").content.decode()
    values = [line.rpartition(",")[2] for line in lines.splitlines()[1:]]
    assert values[:3] == ["nan", "inf", "-inf"]
    assert json.loads(program.get(f"/runs/{story.run.number}").content)["number"]
