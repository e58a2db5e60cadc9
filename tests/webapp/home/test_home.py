"""The home page: empty, full, and only what one may see."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.members import become
from tests.webapp.pages.test_changed import ended
from tests.webapp.stories import Story, launch
from webapp.accounts.models import Project, Role, User
from webapp.comments.models import Comment
from webapp.comments.services import add_comment
from webapp.datasets import services as datasets
from webapp.home.overview import read_home
from webapp.runs.models import Run
from webapp.workers_page.services import WorkerFacts, worker_seen

pytestmark = pytest.mark.django_db


def report_worker(queues: tuple[str, ...] = ("train", "cpu")) -> None:
    now = timezone.now()
    worker_seen(
        WorkerFacts(
            name="train@host-a",
            boot="b",
            host="host-a",
            pid=1,
            queues=queues,
            slots=1,
            devices=("2 CPU cores",),
            versions={},
            started_at=now,
            consuming_at=now,
            busy_run=None,
        )
    )


def test_an_empty_home_leads_to_the_first_run(browser: Client) -> None:
    html = browser.get("/").content.decode()
    assert "Launch your first experiment" in html
    assert "Nothing runs and nothing waits." in html
    assert "No run has ended yet." in html
    assert "Needs a look" not in html


def test_sign_in_leads_home(ada: User, client: Client) -> None:
    answer = client.post("/accounts/login/", {"login": "ada", "password": "a-long-password"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")


def test_running_waiting_failed_and_ended_runs_have_their_places(ada: User, bob: User) -> None:
    report_worker()
    ended(ada)
    Story(launch(bob, "At work")).start().phase(3, "rollout", 18, 32)
    launch(ada, "Waits")
    Story(launch(bob, "Broken")).start().finish("failed", "bad_model", "No model.", "Check it.")
    home = read_home(ada)
    assert [it.run.name for it in home.running] == ["At work", "Waits"]
    assert home.running[0].phase is not None
    assert [(t.title, t.words) for t in home.troubles] == [("#4 Broken", "No model. Check it.")]
    assert home.results[0].sentence == "Solves 57.6 of 96 held-out items; 0 before."
    assert home.results[0].statement is not None
    assert home.results[0].statement.words.startswith("RL added")


def test_old_failures_and_archived_runs_are_let_go(ada: User) -> None:
    report_worker()
    for name in ("Old", "Archived"):
        Story(launch(ada, name)).start().finish("failed", "bad_model", "No model.")
    Run.objects.filter(name="Old").update(finished_at=timezone.now() - timedelta(days=8))
    Run.objects.filter(name="Archived").update(archived_at=timezone.now())
    assert read_home(ada).troubles == []


def test_a_queue_without_a_worker_needs_a_look(ada: User) -> None:
    assert read_home(ada).troubles == []  # a new installation: the first steps speak of it
    report_worker(("train",))
    assert [t.title for t in read_home(ada).troubles] == ["No worker listens on the queue cpu"]


def test_imports_are_their_owners_alone(ada: User, bob: User) -> None:
    datasets.store_upload(ada, "sums.csv", [b"prompt,answer\nq,1\n"])
    assert [job.file_name for job in read_home(ada).imports] == ["sums.csv"]
    assert read_home(bob).imports == []


def test_other_projects_are_not_on_it_and_one_may_be_chosen(
    ada: User, bob: User, browser: Client
) -> None:
    other, hidden = (Project.objects.create(slug=s, name=s.title()) for s in ("other", "hidden"))
    for name, project in (("Seen", other), ("Unseen", hidden)):
        for ending in ("queued", "succeeded", "failed"):
            story = Story(launch(bob, f"{name} {ending}"))
            if ending != "queued":
                story.start().finish(ending, "done", f"{name} words.")
            Run.objects.filter(pk=story.run.pk).update(project=project)
    launch(ada, "In Main")
    become(ada, Role.VIEWER, other)
    html = browser.get("/").content.decode()
    assert "Unseen" not in html
    assert html.count("in <bdi>Other</bdi>") == 2
    for name in ("Seen queued", "Seen succeeded", "Seen failed", "In Main"):
        assert name in html
    narrowed = browser.get("/?project=other").content.decode()
    assert "Seen queued" in narrowed
    assert "In Main" not in narrowed
    assert "/runs/new/" not in narrowed  # a viewer there


def test_an_outsider_sees_nothing_of_any_project(ada: User, bob: User, browser: Client) -> None:
    report_worker()
    for ending in ("queued", "succeeded", "failed"):
        story = Story(launch(bob, f"Secret {ending}"))
        if ending != "queued":
            story.start().finish(ending, "done", "Secret words.")
    add_comment(story.run, bob, "Secret, @ada.")
    become(ada, None)
    for address in ("/", "/?project=main", "/runs/", "/runs/?project=main", "/runs/first-steps/"):
        html = browser.get(address).content.decode()
        for hidden in ("Secret", ">bob<", ">Main<", "/runs/1/"):
            assert hidden not in html, (address, hidden)


def test_what_others_say_to_somebody_is_there_for_a_week(ada: User, bob: User) -> None:
    mine, bobs, other = launch(ada), launch(bob), Project.objects.create(slug="o", name="O")
    hidden = launch(bob)
    Run.objects.filter(pk=hidden.pk).update(project=other)
    add_comment(mine, bob, "Looks good.")
    add_comment(mine, ada, "I think so too.")
    add_comment(bobs, bob, "Not for @adalbert.")
    add_comment(bobs, bob, "See this, @ada.")
    add_comment(hidden, bob, "Secret, @ada.")
    found = [(it.comment.text, it.names_you) for it in read_home(ada).said]
    assert found == [("See this, @ada.", True), ("Looks good.", False)]
    assert read_home(bob).said == []
    Comment.objects.update(created_at=timezone.now() - timedelta(days=8))
    assert read_home(ada).said == []


def test_a_script_gets_only_what_changes(browser: Client) -> None:
    html = browser.get("/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in html
    assert 'id="home"' in html


@pytest.mark.parametrize("text", NAMES)
def test_names_of_any_kind_are_shown_as_text(
    text: str, ada: User, bob: User, browser: Client
) -> None:
    Story(launch(ada, text.strip() or "x")).start().finish("failed", "x", text, text)
    add_comment(launch(ada, text.strip() or "x"), bob, f"@ada {text}")
    html = browser.get("/").content.decode()
    assert [mark for mark in RAW_MARKUP if mark in html] == []
