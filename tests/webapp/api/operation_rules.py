"""What each operation of the API answers to whose token: the table that `test_every_operation.py`
walks.

A new operation gets its line in `RULES`, under its operation id. Run, dataset and import belong to
the main project and to somebody else, as in `tests/webapp/url_rules.py`. Each token has every scope
but `admin`; what `admin` adds stands in `with_admin`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from training_core.contract.presets import TINY_COPY
from webapp.api.scopes import Scope

PEOPLE = ("outsider", "viewer", "reviewer", "curator", "researcher", "admin")
Answers = dict[str, int]


def everybody(status: int, **others: int) -> Answers:
    """One answer for all, with exceptions by name."""
    assert set(others) <= set(PEOPLE)
    return {**dict.fromkeys(PEOPLE, status), **others}


def only(*roles: str, status: int = 200, others: int = 403, outsider: int = 404) -> Answers:
    """What some roles may do; other members are refused."""
    return everybody(others, **{"outsider": outsider, **dict.fromkeys(roles, status)})


@dataclass(frozen=True)
class Rule:
    """What one operation answers."""

    scope: Scope
    answers: Answers
    with_admin: Answers | None = None
    """With the scope `admin` besides; the same when None."""
    sent: Any = None
    """JSON that is sent."""
    query: str = ""
    form: dict[str, Any] = field(default_factory=dict)
    """Fields that are sent beside a file."""


SPEC = TINY_COPY.spec.model_dump(mode="json")
COLUMNS = {"name": "sums of a program", "prompt": "question", "answer": "answer"}
LAUNCHERS = ("researcher", "admin")
UPLOADERS = ("curator", "researcher", "admin")
CURATORS = ("curator", "admin")
OPEN = Rule(Scope.READ, everybody(200))
OF_A_MEMBER = Rule(Scope.READ, everybody(200, outsider=404))
CURVES = Rule(Scope.READ, OF_A_MEMBER.answers, query="key=reward")


def deed(status: int) -> Rule:
    """Somebody else's run: for admins of its project, whose token has the scope `admin`."""
    return Rule(Scope.CONTROL, everybody(403, outsider=404), only("admin", status=status))


RULES: dict[str, Rule] = {
    "get_me": OPEN,
    "list_presets": OPEN,
    "get_preset": OPEN,
    "list_workers": OPEN,
    "list_runs": OPEN,
    "list_datasets": OPEN,
    "get_run": OF_A_MEMBER,
    "get_spec": OF_A_MEMBER,
    "get_spec_yaml": OF_A_MEMBER,
    "get_history": OF_A_MEMBER,
    "list_metrics": OF_A_MEMBER,
    "get_curves": CURVES,
    "get_curves_csv": CURVES,
    "get_logs": OF_A_MEMBER,
    "list_rollouts": OF_A_MEMBER,
    "get_rollouts": OF_A_MEMBER,
    "list_checkpoints": OF_A_MEMBER,
    "list_evaluations": OF_A_MEMBER,
    "list_exports": OF_A_MEMBER,
    "get_export": OF_A_MEMBER,
    "download_export": OF_A_MEMBER,
    "make_export": Rule(Scope.LAUNCH, only(*LAUNCHERS, status=201), sent={"checkpoint": "best"}),
    "cancel_export": deed(409),
    "delete_export": deed(204),
    "get_dataset": OF_A_MEMBER,
    "list_records": OF_A_MEMBER,
    "get_import": Rule(Scope.READ, only(*CURATORS, others=404)),
    "check_spec": Rule(Scope.READ, only(*LAUNCHERS, outsider=403), sent=SPEC),
    "launch_run": Rule(Scope.LAUNCH, only(*LAUNCHERS, status=201, outsider=403), sent=SPEC),
    "restart_run": Rule(Scope.LAUNCH, only(*LAUNCHERS, status=201), sent={"checkpoint": "latest"}),
    "stop_run": deed(200),
    "pause_run": deed(200),
    "resume_run": deed(409),
    "evaluate_run": deed(202),
    "checkpoint_run": deed(202),
    "archive_run": deed(409),
    "unarchive_run": deed(200),
    "delete_run": Rule(
        Scope.CONTROL,
        everybody(403, outsider=404),
        only("admin", status=409),
        query="name={run.name}",
    ),
    "upload_file": Rule(
        Scope.DATA,
        only(*UPLOADERS, status=201, outsider=403),
        form={"name": "sums of a program"},
    ),
    "start_import": Rule(Scope.DATA, only(*CURATORS, others=404), sent=COLUMNS),
}
"""By operation id. The run is at work, so it can be stopped and not resumed, archived, deleted; its
export is ready, so there is nothing to cancel."""
