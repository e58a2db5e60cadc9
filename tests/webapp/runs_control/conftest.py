"""A person, a spec and a run, for the control plane's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.webapp.runs_control.story import Story
from training_core.contract.presets import TINY_COPY
from training_core.contract.spec import CheckpointSpec, ResourceSpec, RunSpec
from webapp.accounts.models import User
from webapp.control.batches import read_batch
from webapp.control.claims import Claim, claim_run
from webapp.control.record import record_events
from webapp.runs.models import Run
from webapp.runs.services import launch_run


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob")


@pytest.fixture
def spec() -> RunSpec:
    """Twelve steps of the tiny model."""
    warm_up, rl = TINY_COPY.spec.stages
    return TINY_COPY.spec.model_copy(
        update={
            "name": "a run",
            "domains": (TINY_COPY.spec.domains[0].model_copy(update={"held_out_items": 8}),),
            "stages": (
                warm_up.model_copy(update={"steps": 4}),
                rl.model_copy(update={"steps": 8}),
            ),
            "checkpoint": CheckpointSpec(interval_steps=2),
            "resources": ResourceSpec(max_attempts=3),
        }
    )


@pytest.fixture
def run(alice: User, spec: RunSpec) -> Run:
    """A queued run."""
    return launch_run(owner=alice, spec=spec)


@pytest.fixture
def claim(run: Run) -> Claim:
    """The first claim of the run."""
    claim = claim_run(run.pk, "train@one", "boot-1")
    assert claim is not None
    return claim


@pytest.fixture
def story(claim: Claim) -> Story:
    """The first attempt's events file."""
    return Story(claim.run_dir, claim.attempt)


@pytest.fixture
def ingest() -> Callable[[Story, Run], bool]:
    """Record everything that a story tells, from its first byte."""

    def ingest(story: Story, run: Run) -> bool:
        return record_events(run.pk, story.attempt, read_batch(story.path, 0))

    return ingest
