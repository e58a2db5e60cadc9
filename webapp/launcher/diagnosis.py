"""What `manage.py doctor` finds: one finding a check, and how they are shown.

Called by the command and by its two modules of checks. A check is a plain function that returns a
Finding; one that raises is itself a finding, so that the other checks still run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True)
class Finding:
    """The result of one check; anything but OK carries a remedy of one sentence."""

    check: str
    status: Status
    detail: str
    remedy: str = ""


Check = Callable[[], Finding]


def ok(check: str, detail: str) -> Finding:
    """All is well."""
    return Finding(check, "OK", detail)


def warn(check: str, detail: str, remedy: str) -> Finding:
    """Temper works, but less well or not for long."""
    return Finding(check, "WARN", detail, remedy)


def fail(check: str, detail: str, remedy: str) -> Finding:
    """Temper does not work until this is mended."""
    return Finding(check, "FAIL", detail, remedy)


def run_checks(checks: Iterable[Check]) -> list[Finding]:
    """Run them all, in order."""
    return [run_check(check) for check in checks]


def run_check(check: Check) -> Finding:
    """Run one; what it raises becomes a finding."""
    name = check.__name__.replace("_", " ")
    try:
        return check()
    except Exception as error:
        words = " ".join(str(error).split())
        return fail(name, f"{type(error).__name__}: {words}", "Mend what the message names.")


def has_failure(findings: Iterable[Finding]) -> bool:
    """Whether the command ends with status 1."""
    return any(finding.status == "FAIL" for finding in findings)


def as_table(findings: Iterable[Finding]) -> str:
    """For people."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.status:<5} {finding.check:<18} {finding.detail}")
        if finding.remedy:
            lines.append(f"{'':<24} -> {finding.remedy}")
    return "\n".join(lines)


def as_json(findings: Iterable[Finding]) -> str:
    """For programs."""
    return json.dumps([asdict(finding) for finding in findings], indent=2)
