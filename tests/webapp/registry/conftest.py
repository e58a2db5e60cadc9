"""A checkpoint of a run, with something on disk."""

from __future__ import annotations

import pytest

from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.runs.models import Checkpoint


@pytest.fixture
def story(ada: User) -> Story:
    """A run of Ada's that was evaluated at its start and at step 61."""
    story = Story(launch(ada, name="Add digits")).start()
    story.evaluate(0, "start", "base model", 0.04).step(61)
    return story.evaluate(61, "interval", "now", 0.4, [(0, "base model", 0.36)])


@pytest.fixture
def checkpoint(story: Story) -> Checkpoint:
    """The one after step 61."""
    story.checkpoint(61, best=True)
    return Checkpoint.objects.select_related("run__project", "run__owner").get(run=story.run)
