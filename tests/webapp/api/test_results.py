"""What a run made, read by a program; datasets, uploads, imports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.webapp.api.conftest import Program
from tests.webapp.stories import Story, launch
from webapp.accounts.models import Membership, Project, Role, User
from webapp.datasets.models import DatasetImport
from webapp.datasets.services import run_import


@pytest.fixture
def story(ada: User) -> Story:
    """A run with one of everything."""
    story = Story(launch(ada)).start()
    story.evaluate(0, "start", "base model", 0.04)
    for step in (61, 62, 63):
        story.step(step, reward=float("nan") if step == 62 else step / 100)
    story.rollouts(61).rollouts(62).checkpoint(62, best=True)
    return story.say("hello\nworld\nhalf")


def test_curves_are_the_points_of_the_chart(program: Program, story: Story) -> None:
    at = f"/runs/{story.run.number}"
    names = [metric["name"] for metric in program.get(f"{at}/metrics").json()["items"]]
    assert {"reward", "eval/pass@1"} <= set(names)
    document = program.get(f"{at}/curves", key=["reward", "entropy"], smooth=0.5).json()
    reward, entropy = document["curves"]
    assert [point["step"] for point in reward["points"]] == [61, 62, 63]
    assert [point["value"] for point in reward["points"]] == [0.61, "nan", 0.63]
    assert reward["every_point"]
    assert entropy["points"][0]["smoothed"] is not None
    window = program.get(f"{at}/curves", **{"key": "reward", "from": 62.5}).json()
    steps = [point["step"] for point in window["curves"][0]["points"]]
    assert steps == [62, 63], "with the neighbour outside, so that a line reaches the edge"
    lines = program.get(f"{at}/curves.csv", key="reward").content.decode().splitlines()
    assert lines[0] == "run,run_name,metric,step,time,value"
    assert [line.split(",")[-1] for line in lines[1:]] == ["0.61", "nan", "0.63"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "key"),
        ({"key": "reward", "x": "y"}, "x"),
        ({"key": "reward", "budget": 3}, "budget"),
        ({"key": "reward", "smooth": 1}, "smooth"),
        ({"key": "reward", "from": "nan"}, "from"),
        ({"key": "reward", "from": 2, "to": 1}, "to"),
        ({"key": "a" * 256}, "key.0"),
    ],
)
def test_a_wrong_curve_parameter_is_named(
    program: Program, story: Story, query: dict[str, Any], field: str
) -> None:
    answer = program.get(f"/runs/{story.run.number}/curves", **query)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


def test_the_console_is_read_piece_by_piece(program: Program, story: Story) -> None:
    at = f"/runs/{story.run.number}/logs"
    first = program.get(at).json()
    assert first == {"attempt": 1, "text": "hello\nworld\n", "start": 0, "end": 12, "size": 16}
    assert program.get(at, offset=12).json()["text"] == ""
    story.say(" a line\n")
    assert program.get(at, offset=12).json()["text"] == "half a line\n"
    assert program.get(at, offset=10**15).json()["text"] == ""
    assert program.get(at, attempt=2).status_code == 404


def test_rollouts_are_found_and_read(program: Program, story: Story, bob: User) -> None:
    at = f"/runs/{story.run.number}/rollouts"
    page = program.get(at, limit=4).json()
    assert len(page["items"]) == 4
    rest = program.get(at, limit=4, cursor=page["next_cursor"]).json()
    assert len(rest["items"]) == 2
    assert rest["next_cursor"] is None
    assert {group["step"] for group in program.get(at, step=62).json()["items"]} == {62}
    group = program.get(f"{at}/{page['items'][0]['id']}").json()
    assert len(group["rollouts"]) == group["size"]
    assert group["rollouts"][0]["scores"][0]["explanation"]
    assert program.get(at, q="no such words").json()["items"] == []
    assert program.get(at, outcome="truncated").status_code == 200
    other = launch(bob)
    assert program.get(f"/runs/{other.number}/rollouts/{group['id']}").status_code == 404


def test_checkpoints_evaluations_and_history(program: Program, story: Story) -> None:
    at = f"/runs/{story.run.number}"
    [checkpoint] = program.get(f"{at}/checkpoints").json()["items"]
    assert (checkpoint["step"], checkpoint["is_best"]) == (62, True)
    [evaluation] = program.get(f"{at}/evaluations").json()["items"]
    assert evaluation["results"][0]["pass_at_1"]["value"] == 0.04
    history = program.get(f"{at}/history").json()
    assert history["attempts"][0]["number"] == 1
    assert program.get(at).json()["latest"]["reward"] == 0.63


def test_the_house(program: Program) -> None:
    presets = program.get("/presets").json()["items"]
    assert program.get(f"/presets/{presets[0]['slug']}").json() == presets[0]
    assert program.get("/workers").json()["workers"] == []


def sums(rows: int = 20, answer: str = "answer") -> SimpleUploadedFile:
    lines = [f"question,{answer}", *(f"{n} + 1,{n + 1}" for n in range(rows))]
    return SimpleUploadedFile("sums.csv", "\n".join(lines).encode())


def test_a_file_becomes_a_dataset(program: Program) -> None:
    answer = program.upload({"file": sums(), "name": "sums"})
    assert answer.status_code == 201, answer.content
    job = answer.json()
    assert job["state"] == "queued"
    run_import(DatasetImport.objects.get().pk)
    done = program.get(f"/imports/{job['id']}").json()
    assert done["state"] == "done"
    assert done["version"]["record_count"] == 20
    [dataset] = program.get("/datasets").json()["items"]
    assert dataset == program.get(f"/datasets/{done['dataset']}").json()
    assert dataset["versions"][0]["id"] == done["version"]["id"]
    page = program.get(f"/datasets/{dataset['id']}/records", limit=15).json()
    assert page["next_cursor"] == 15
    assert page["items"][0]["payload"]["answer"] == "1"
    rest = program.get(f"/datasets/{dataset['id']}/records", cursor=15).json()
    assert len(rest["items"]) == 5


def test_a_file_goes_where_it_is_sent(program: Program, ada: User) -> None:
    second = Project.objects.create(slug="second", name="Second")
    hidden = program.upload({"file": sums(), "project": "second"})
    assert hidden.status_code == 422
    assert hidden.json()["errors"][0]["field"] == "project"
    Membership.objects.create(user=ada, project=second, role=Role.CURATOR)
    job = program.upload({"file": sums(), "project": "second"}).json()
    assert (job["project"], job["owner"]) == ("second", "ada")
    run_import(DatasetImport.objects.get().pk)
    assert program.get("/datasets", project="main").json()["items"] == []
    [dataset] = program.get("/datasets", project="second").json()["items"]
    assert dataset["project"] == "second"
    assert program.upload({"file": sums()}).json()["project"] == "second", "as the last upload"


def test_columns_can_be_chosen_later(program: Program) -> None:
    job = program.upload({"file": sums(answer="zzz"), "start": "false"}).json()
    assert job["state"] == "uploaded"
    assert job["columns"]["columns"] == ["question", "zzz"]
    at = f"/imports/{job['id']}/start"
    wrong = program.post(at, {"name": "s", "prompt": "question", "answer": "none"})
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "answer"
    half = program.post(at, {"name": "half \ud800", "prompt": "question", "answer": "zzz"})
    assert (half.status_code, half.json()["errors"][0]["field"]) == (422, "name")
    assert (
        program.post(at, {"name": "s", "prompt": "question", "answer": "zzz"}).json()["state"]
        == "queued"
    )


def test_a_refused_upload_leaves_nothing(program: Program, settings: Any) -> None:
    answer = program.upload({"file": sums(answer="zzz")})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "answer"
    assert "question, zzz" in answer.json()["detail"]
    empty = program.upload({"file": SimpleUploadedFile("x.csv", b"")})
    assert empty.json()["errors"][0]["field"] == "file"
    packed = program.upload({"file": SimpleUploadedFile("x.csv", b"PK\x03\x04")})
    assert "zip archive" in packed.json()["detail"]
    missing = program.upload({"name": "x"})
    assert missing.json()["errors"][0]["field"] == "file"
    assert not DatasetImport.objects.exists()
    assert list(settings.UPLOADS_DIR.iterdir()) == []


def test_an_upload_sent_twice_is_stored_once(program: Program) -> None:
    key = {"Idempotency-Key": "u1"}
    first = program.upload({"file": sums(), "name": "s"}, **key)
    second = program.upload({"file": sums(), "name": "s"}, **key)
    assert first.json() == second.json()
    assert DatasetImport.objects.count() == 1
    assert program.upload({"file": sums(21), "name": "s"}, **key).status_code == 422


def test_imports_are_their_owners(
    program: Program, bob: User, program_of: Callable[..., Program]
) -> None:
    job = program.upload({"file": sums(), "start": "false"}).json()
    his = program_of(bob)
    assert his.get(f"/imports/{job['id']}").status_code == 404
    body = {"name": "s", "prompt": "question", "answer": "answer"}
    assert his.post(f"/imports/{job['id']}/start", body).status_code == 404
