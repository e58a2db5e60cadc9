"""Make a run's directory ready for one attempt, and carry wishes into it.

Called by the supervisor right after a claim, and whenever a person asks for something.
"""

from __future__ import annotations

from datetime import timedelta

from training_core.contract.control import ControlCommand
from training_core.contract.domains import DatasetDomain
from training_core.contract.rundir import RunDir
from webapp.control.claims import LEASE, Claim, heartbeat
from webapp.control.verdicts import Verdict
from webapp.datasets.models import DatasetVersion
from webapp.datasets.services import DatasetChangedError, find_version, write_version
from webapp.runs import disk

RECORDS_PER_S = 1_000
"""Cautious speed at which a dataset is copied; the lease is stretched by it."""


def prepare_directory(claim: Claim) -> Verdict | None:
    """Spec, owner token and datasets; a verdict when the attempt must end before it begins.

    Raises LeaseLost, or OSError when the disk refuses.
    """
    run_dir = claim.run_dir
    if problem := disk.problem_with_space(claim.spec, run_dir.root):
        return Verdict("failed", "disk_full", problem, "Free some space, then resume the run.")
    run_dir.attempt(claim.attempt).mkdir(parents=True, exist_ok=True)
    run_dir.write_spec(claim.spec)
    for domain in claim.spec.domains:
        if isinstance(domain, DatasetDomain):
            verdict = _write_dataset(claim, domain)
            if verdict is not None:
                return verdict
    run_dir.write_owner(claim.attempt, claim.token)
    return None


def append_commands(run_dir: RunDir, commands: tuple[ControlCommand, ...]) -> None:
    """Put commands where the trainer reads them."""
    for command in commands:
        run_dir.append_control(command)


def _write_dataset(claim: Claim, domain: DatasetDomain) -> Verdict | None:
    """The run's own copy of a dataset version, once; a verdict when it is not what it was."""
    target = claim.run_dir.dataset_file(domain.dataset_version)
    if target.exists():
        return None
    version = find_version(domain.dataset_version)
    if version is None or (domain.content_hash and version.content_hash != domain.content_hash):
        return _dataset_verdict(domain, "is gone or has changed since the launch")
    heartbeat(claim, LEASE + timedelta(seconds=version.record_count / RECORDS_PER_S))
    try:
        write_version(version.pk, target)
    except (DatasetVersion.DoesNotExist, DatasetChangedError) as error:
        return _dataset_verdict(domain, f"cannot be used: {error}")
    return None


def _dataset_verdict(domain: DatasetDomain, what: str) -> Verdict:
    """The end of a run whose data are not there."""
    return Verdict(
        "failed",
        "bad_dataset",
        f"The dataset of domain {domain.name} {what}.",
        "Launch a copy of the run with a dataset version that exists.",
    )
