"""Finding, launching and steering runs as a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client

from tests.webapp.api.conftest import Program
from tests.webapp.hostile import NAMES
from tests.webapp.stories import Story, launch
from training_core.contract.presets import TINY_COPY
from training_core.contract.spec import RunSpec
from training_core.contract.yaml_text import spec_to_yaml
from webapp.accounts.models import Membership, Project, Role, User
from webapp.runs.forms import check_document
from webapp.runs.models import Run


def tiny(**changes: Any) -> dict[str, Any]:
    return {**TINY_COPY.spec.model_dump(mode="json"), **changes}


def test_a_posted_spec_becomes_a_queued_run(program: Program) -> None:
    answer = program.post("/runs?preset=tiny-model", tiny(name="from a program"))
    assert answer.status_code == 201, answer.content
    run = Run.objects.get()
    document = answer.json()
    assert document["number"] == run.number
    assert document["state"] == "queued"
    assert document["preset"] == "tiny-model"
    assert document["project"] == "main"
    assert program.get(f"/runs/{run.number}").json() == document
    spec = program.get(f"/runs/{run.number}/spec").json()
    assert RunSpec.model_validate(spec) == RunSpec.model_validate(tiny(name="from a program"))
    text = program.get(f"/runs/{run.number}/spec.yaml").content.decode()
    assert yaml.safe_load(text)["name"] == "from a program"


def test_yaml_is_taken_and_its_errors_have_lines(program: Program) -> None:
    text = spec_to_yaml(TINY_COPY.spec)
    assert program.send("/runs", text.encode(), "application/yaml").status_code == 201
    wrong = text.replace("group_size: 8", "group_size: 1")
    answer = program.send("/runs", wrong.encode(), "application/yaml; charset=utf-8")
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert error["field"] == "stages.1.group_size"
    line = wrong.splitlines()[error["line"] - 1]
    assert "group_size: 1" in line
    torn = program.send("/runs", b"name: [", "application/yaml")
    assert torn.status_code == 400
    assert "ine 1" in torn.json()["detail"]


@pytest.mark.parametrize(
    "change",
    [
        {"stages": []},
        {"seed": -1},
        {"seed": "x"},
        {"nmae": "x"},
        {"model": {"ref": "no such model"}},
        {"evaluation": {"success_reward": "nothing"}},
        {"name": "a\0b"},
        {"domains": [{"type": "dataset", "name": "d", "dataset_version": "no"}]},
    ],
)
def test_errors_are_those_of_the_form(program: Program, change: dict[str, Any]) -> None:
    document = tiny(**change)
    expected = check_document(document, Project.objects.main()).errors
    assert expected
    for address in ("/runs", "/specs/check"):
        answer = program.post(address, document)
        assert answer.status_code == 422
        found = [(error["field"], error["message"]) for error in answer.json()["errors"]]
        assert found == [(error.path, error.message) for error in expected]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 422),
        (b"null", 422),
        (b'{"a": NaN}', 400),
        (b'{"a": 1, "a": 2}', 400),
        (b"[" * 100_000, 400),
        (b'{"a": ' + b"9" * 5_000 + b"}", 400),
        (b"\xff", 400),
        (b'{"name": "\\ud800"}', 422),
    ],
)
def test_a_body_that_is_no_document_is_said_to_be_none(
    program: Program, body: bytes, status: int
) -> None:
    answer = program.send("/runs", body, "application/json")
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["detail"]


def test_other_types_of_body_and_large_ones_are_refused(program: Program, settings: Any) -> None:
    assert program.send("/runs", b"x", "text/plain").status_code == 415
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    answer = program.send("/runs", b" " * 200, "application/json")
    assert answer.status_code == 413
    assert answer["Content-Type"] == "application/problem+json"


def test_a_trial_makes_nothing(program: Program) -> None:
    answer = program.post("/specs/check", tiny())
    assert answer.status_code == 200
    assert answer.json()["steps"] == TINY_COPY.spec.total_steps
    assert not Run.objects.exists()


def test_errors_are_english_whatever_the_client_asks_for(program: Program) -> None:
    document = tiny(model={"ref": "x y"})
    answer = program.post("/specs/check", document, **{"Accept-Language": "zh-CN"})
    [error] = answer.json()["errors"]
    assert "is no model: use" in error["message"]


def test_the_same_key_launches_once(program: Program, ada: User, bob: User) -> None:
    key = {"Idempotency-Key": "nightly-1"}
    first = program.post("/runs", tiny(), **key)
    second = program.post("/runs", tiny(), **key)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 1
    other = program.post("/runs", tiny(name="other"), **key)
    assert other.status_code == 422
    assert "another request" in other.json()["detail"]
    assert program.post("/runs", tiny(), **{"Idempotency-Key": "a b"}).status_code == 422
    assert Run.objects.count() == 1


def test_a_refused_request_leaves_its_key_free(program: Program) -> None:
    key = {"Idempotency-Key": "k"}
    assert program.post("/runs", tiny(seed=-1), **key).status_code == 422
    assert program.post("/runs", tiny(), **key).status_code == 201


def test_keys_belong_to_people(
    program: Program, bob: User, program_of: Callable[..., Program]
) -> None:
    key = {"Idempotency-Key": "k"}
    mine = program.post("/runs", tiny(), **key).json()
    his = program_of(bob).post("/runs", tiny(), **key).json()
    assert mine["number"] != his["number"]
    assert (mine["owner"], his["owner"]) == ("ada", "bob")


@pytest.fixture
def second(ada: User) -> Project:
    """Another project in which Ada may launch."""
    project = Project.objects.create(slug="second", name="Second")
    Membership.objects.create(user=ada, project=project, role=Role.RESEARCHER)
    return project


def test_a_run_goes_where_it_is_sent(program: Program, second: Project, bob: User) -> None:
    unsaid = program.post("/runs", tiny())
    assert unsaid.status_code == 422
    assert unsaid.json()["errors"] == [
        {
            "field": "project",
            "message": "Say which project the run belongs to: main, second.",
            "line": None,
        }
    ]
    made = program.post("/runs?project=second", tiny()).json()
    assert made["project"] == "second"
    assert program.post("/runs", tiny()).json()["project"] == "second", "where she launched last"
    child = program.post(f"/runs?parent={made['number']}&project=main", tiny()).json()
    assert (child["project"], child["parent"]) == ("main", made["number"])
    [only] = program.get("/runs", project="main").json()["items"]
    assert only["number"] == child["number"]
    assert program.post("/specs/check?project=main", tiny()).json()["project"] == "main"


def test_a_project_that_one_may_not_launch_in_is_named(program: Program, ada: User) -> None:
    hidden = Project.objects.create(slug="hidden", name="Hidden")
    seen = Project.objects.create(slug="seen", name="Seen")
    Membership.objects.create(user=ada, project=seen, role=Role.VIEWER)
    for address in ("/runs", "/specs/check"):
        for project, words in ((hidden, "no project 'hidden'"), (seen, "may not launch in Seen")):
            answer = program.post(f"{address}?project={project.slug}", tiny())
            assert answer.status_code == 422
            [error] = answer.json()["errors"]
            assert error["field"] == "project"
            assert words in error["message"]
    assert not Run.objects.exists()


def test_a_parent_that_one_may_not_see_is_not_named(
    program: Program, second: Project, ada: User, bob: User, program_of: Callable[..., Program]
) -> None:
    parent = program.post("/runs?project=second", tiny()).json()["number"]
    child = program.post(f"/runs?parent={parent}&project=main", tiny()).json()["number"]
    his = program_of(bob)
    assert his.get(f"/runs/{child}").json()["parent"] is None
    assert [run["parent"] for run in his.get("/runs").json()["items"]] == [None]
    assert program.get(f"/runs/{child}").json()["parent"] == parent
    assert his.post(f"/runs?parent={parent}", tiny()).status_code == 404


def test_pages_of_runs_hold_each_run_once(program: Program, ada: User, bob: User) -> None:
    numbers = [launch(ada, f"run {index}").number for index in range(5)]
    launch(bob, "his")
    found, cursor = [], None
    for _ in range(3):
        query = {"cursor": cursor} if cursor is not None else {}
        page = program.get("/runs", owner="ada", limit=2, **query).json()
        found += [run["number"] for run in page["items"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert found == numbers[::-1]
    assert len(program.get("/runs", q="his").json()["items"]) == 1
    assert program.get("/runs", state=["running", "failed"]).json()["items"] == []
    assert len(program.get("/runs", state=["queued"]).json()["items"]) == 6


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"cursor": "-1"}, "cursor"),
        ({"state": "wild"}, "state.0"),
        ({"q": "a\0"}, "q"),
    ],
)
def test_a_wrong_parameter_is_named(program: Program, query: dict[str, Any], field: str) -> None:
    answer = program.get("/runs", **query)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_what_is_not_there_is_a_problem_document(program: Program, client: Client) -> None:
    for address in ("/runs/99", "/nothing", "/runs/99/logs", "/presets/none", "/datasets/9", ""):
        answer = program.get(address)
        assert answer.status_code in {404, 301}, address
        if answer.status_code == 404:
            assert answer["Content-Type"] == "application/problem+json"
            assert answer.json()["status"] == 404
    assert program.get("/runs/99999999999999999999").status_code == 422
    answer = program.delete("/me")
    assert answer.status_code == 405
    assert answer["Allow"] == "GET"
    assert answer["Content-Type"] == "application/problem+json"


def test_a_fault_of_ours_is_a_problem_document(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.api.routes.house.read_workers", lambda _: 1 / 0)
    answer = program.get("/workers")
    assert answer.status_code == 500
    assert answer["Content-Type"] == "application/problem+json"
    assert "ZeroDivision" not in answer.content.decode()


def test_steering_does_what_the_buttons_do(program: Program, ada: User) -> None:
    run = launch(ada)
    at = f"/runs/{run.number}"
    assert program.post(f"{at}/pause").json()["state"] == "paused"
    assert program.post(f"{at}/resume").json()["state"] == "queued"
    refused = program.post(f"{at}/evaluate")
    assert refused.status_code == 409
    assert "no trainer is at work" in refused.json()["detail"]
    assert program.post(f"{at}/stop").json()["state"] == "stopped"
    for _ in range(2):
        assert program.post(f"{at}/archive").json()["archived_at"]
    for _ in range(2):
        assert program.post(f"{at}/unarchive").json()["archived_at"] is None
    events = program.get(f"{at}/history").json()["events"]
    assert [event["cause"] for event in events[:2]] == ["unarchived", "archived"]
    assert program.delete(f"{at}?name=wrong").status_code == 422
    assert Run.objects.exists()
    assert program.delete(f"{at}?name={run.name}").status_code == 204
    assert not Run.objects.exists()


def test_a_live_run_takes_wishes(program: Program, ada: User) -> None:
    story = Story(launch(ada)).start()
    answer = program.post(f"/runs/{story.run.number}/evaluate")
    assert answer.status_code == 202
    assert story.run.control_requests.get().command == "evaluate_now"


def test_somebody_elses_run_is_seen_and_not_steered(
    ada: User, bob: User, program_of: Callable[..., Program]
) -> None:
    run = launch(ada)
    his = program_of(bob)
    assert his.get(f"/runs/{run.number}").status_code == 200
    for deed in ("stop", "pause", "resume", "evaluate", "checkpoint", "archive", "unarchive"):
        assert his.post(f"/runs/{run.number}/{deed}").status_code == 403
    assert his.delete(f"/runs/{run.number}?name={run.name}").status_code == 403


def test_a_run_goes_on_from_a_checkpoint(program: Program, ada: User) -> None:
    story = Story(launch(ada)).start()
    story.step(60, "warm-up").checkpoint(60).step(70).checkpoint(70, best=True)
    at = f"/runs/{story.run.number}/restart"
    answer = program.post(at, {"checkpoint": "best"})
    assert answer.status_code == 201, answer.content
    child = Run.objects.get(number=answer.json()["number"])
    assert answer.json()["parent"] == story.run.number
    assert child.parent_checkpoint.step == 70
    assert program.post(at, {"checkpoint": 60}).json()["step"] == 60
    assert program.post(at, {"checkpoint": 61}).status_code == 422
    assert program.post(at, {"checkpoint": "newest"}).json()["errors"][0]["field"] == "checkpoint"
    short = {**story.run.spec, "stages": [story.run.spec["stages"][0]]}
    refused = program.post(at, {"checkpoint": "latest", "spec": short})
    assert refused.json()["errors"][0]["field"] == "stages"


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_come_back_as_they_were(program: Program, name: str) -> None:
    answer = program.post("/runs", tiny(name=name))
    assert answer.status_code == 201
    assert program.get(f"/runs/{answer.json()['number']}").json()["name"] == name
