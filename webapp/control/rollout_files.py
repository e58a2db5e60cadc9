"""Read the slice of a rollout file that an event speaks of. Called by `ledger`.

A slice that is not there or is not whole gives a sentence instead of an exception: the curves of a
run do not depend on its samples.
"""

from __future__ import annotations

from pydantic import ValidationError

from training_core.contract.events import RolloutsWritten
from training_core.contract.rollouts import RolloutGroupRecord
from training_core.contract.rundir import RunDir


def read_groups(run_dir: RunDir, event: RolloutsWritten) -> tuple[list[RolloutGroupRecord], str]:
    """The groups of the slice, and what is wrong with it (empty when nothing is)."""
    path = (run_dir.root / event.file).resolve()
    if not path.is_relative_to(run_dir.root.resolve()):
        return [], f"The rollout file {event.file!r} lies outside the run directory."
    try:
        with path.open("rb") as file:
            file.seek(event.offset_bytes)
            content = file.read(event.length_bytes)
    except OSError as error:
        return [], f"The rollouts of step {event.step} cannot be read: {error}."
    groups = []
    for line in filter(None, content.split(b"\n")):
        try:
            groups.append(RolloutGroupRecord.model_validate_json(line))
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"]
            return groups, f"A rollout group of step {event.step} in {event.file} is bad: {reason}."
    if len(groups) != event.groups:
        return groups, f"{event.file} holds {len(groups)} of {event.groups} groups of the step."
    return groups, ""
