"""What a dataset says about the run on it: rewards from its answers, length from its size."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from training_core.contract.spec import RunSpec
from webapp.accounts.models import User
from webapp.datasets import dispatch, services
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import DatasetVersion
from webapp.datasets.proposals import find_choices
from webapp.runs import preflight
from webapp.runs.origins import Origin

pytestmark = pytest.mark.django_db
COLOURS = ("Red", "Green", "Blue")


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)


def version_of(owner: User, answers: list[str]) -> DatasetVersion:
    """An imported dataset with these answers."""
    rows = (json.dumps({"prompt": f"question {i}", "answer": a}) for i, a in enumerate(answers))
    job = services.store_upload(owner, "a.jsonl", [f"{row}\n".encode() for row in rows])
    services.start_import(job, "mine", Mapping("prompt", "answer"), "")
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.version is not None, job.message
    return job.version


def proposed(version: DatasetVersion) -> tuple[RunSpec, str]:
    """The spec that the launch form opens with, and the reasons."""
    origin = Origin(dataset=version)
    assert origin.proposal is not None
    return RunSpec.model_validate(origin.document()), " ".join(origin.proposal.reasons.values())


def leaves(spec: RunSpec) -> list[str]:
    return [term.node.type for term in spec.reward.root.terms]  # type: ignore[union-attr]


def test_numbers_are_compared_as_numbers(ada: User) -> None:
    spec, reasons = proposed(version_of(ada, [str(n) for n in range(40)]))
    assert leaves(spec) == ["correctness", "format"]
    assert "since the answers are numbers" in reasons
    assert preflight.check(spec) == []


def test_a_few_words_that_repeat_are_choices(ada: User) -> None:
    version = version_of(ada, [COLOURS[n % 3] for n in range(40)])
    spec, reasons = proposed(version)
    assert leaves(spec) == ["match", "format"]
    assert spec.evaluation.success_reward == "match"
    assert "Reply with one of Red, Green, Blue inside" in spec.domains[0].system_prompt
    assert "3 choices: Red, Green, Blue" in reasons
    assert preflight.check(spec) == []


def test_words_that_do_not_repeat_are_matched_too(ada: User) -> None:
    spec, reasons = proposed(version_of(ada, [f"word {n}" for n in range(40)]))
    assert leaves(spec) == ["match", "format"]
    assert "since the answers are words: 7 characters" in reasons


def test_long_answers_are_warned_about(ada: User) -> None:
    spec, reasons = proposed(version_of(ada, [f"{n} " + "long " * 60 for n in range(40)]))
    assert "hardly ever repeats so much word for word" in reasons
    rl = spec.stages[1]
    assert rl.type == "rl"
    assert rl.sampling.max_new_tokens == 128
    assert spec.evaluation.max_new_tokens == 128


def test_a_small_dataset_is_not_gone_through_dozens_of_times(ada: User) -> None:
    version = version_of(ada, [str(n) for n in range(20)])
    spec, reasons = proposed(version)
    warm_up, rl = spec.stages
    assert warm_up.steps * warm_up.batch_size <= 3 * version.train_count + warm_up.batch_size  # type: ignore[union-attr]
    assert rl.steps < 28
    assert f"{version.train_count:,} training prompts at most 3 times" in reasons


@pytest.mark.parametrize(
    ("answers", "choices"),
    [
        (["yes", "no"] * 3, ["yes", "no"]),
        (["yes", "no", "no"] * 3, ["no", "yes"]),
        (["yes"] * 9, []),
        (["a", "b", "c"], []),
        ([str(n % 13) for n in range(100)], []),
        ([], []),
    ],
)
def test_choices_are_few_and_repeat(answers: list[str], choices: list[str]) -> None:
    assert find_choices(answers) == choices


def test_the_launch_form_says_what_is_proposed_and_launches_as_it_stands(
    browser: Client, ada: User
) -> None:
    version = version_of(ada, [f"<b>{COLOURS[n % 3]}</b>" for n in range(40)])
    page = browser.get(reverse("runs:launch"), {"dataset": str(version.pk)}).content.decode()
    assert "Proposed for this dataset" in page
    assert "<b>Red" not in page
    assert "&lt;b&gt;Red" in page
    assert "ready" in page
    assert "against the preset" not in page, "a form just opened has changed nothing"
