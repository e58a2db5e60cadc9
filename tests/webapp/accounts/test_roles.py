"""Who may do what in which project, asked of the table and of everything that hands out rows."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.test import Client, RequestFactory
from django.utils import timezone

from tests.webapp.members import become
from tests.webapp.stories import Story, launch
from training_core.contract.presets import TINY_COPY
from webapp.accounts.models import Membership, Project, Role, User
from webapp.accounts.roles import ROLES_WITH, Right, may, projects_where, who_may
from webapp.datasets import access as datasets
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.metrics import live
from webapp.metrics.access import get_runs_for_user, visible_run_ids
from webapp.metrics.models import LiveEvent
from webapp.metrics.views.stream import visible_topics
from webapp.runs import preflight, services
from webapp.runs.access import can_control, get_controllable_run_for_user, get_run_for_user
from webapp.runs.models import Run
from webapp.runs.refusals import LaunchRefused
from webapp.ui.projects import standing_of


@pytest.fixture
def secret(db: None) -> Project:
    """A project that neither Ada nor Bob is in."""
    return Project.objects.create(slug="secret", name="Secret")


@pytest.fixture
def hidden(secret: Project) -> Run:
    """A run of it."""
    eve = User.objects.create_user("eve")
    become(eve, Role.ADMIN, secret)
    spec = TINY_COPY.spec.model_copy(update={"name": "Hidden work"})
    return services.launch_run(owner=eve, spec=spec, project=secret)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("right", Right)
def test_the_table_is_what_the_questions_answer(role: Role, right: Right, ada: User) -> None:
    main = Project.objects.main()
    become(ada, role)
    assert may(ada, right, main) == (role in ROLES_WITH[right])
    assert (main in projects_where(ada, right)) == (role in ROLES_WITH[right])
    for archived_at in (None, timezone.now()):
        Project.objects.update(archived_at=archived_at)
        request = RequestFactory().get("/")
        request.user = ada
        assert standing_of(request).where(right) == list(projects_where(ada, right))


@pytest.mark.parametrize("right", Right)
def test_nobody_has_a_right_without_a_membership(right: Right, ada: User, secret: Project) -> None:
    gone = User.objects.create_user("gone", is_active=False)
    assert not may(ada, right, secret)
    assert not may(AnonymousUser(), right, Project.objects.main())
    assert not may(gone, right, Project.objects.main())
    assert may(User.objects.create_superuser("root"), right, secret)


def test_an_archived_project_is_read_and_managed_alone(ada: User) -> None:
    main = Project.objects.main()
    become(ada, Role.ADMIN)
    Project.objects.update(archived_at=timezone.now())
    kept = {right for right in Right if may(ada, right, main)}
    assert kept == {Right.VIEW, Right.MANAGE}


def test_a_refusal_names_the_roles_and_the_admins(ada: User) -> None:
    main = Project.objects.main()
    assert who_may(Right.LAUNCH, main) == "a researcher or admin of Main"
    become(ada, Role.ADMIN)
    assert who_may(Right.STEER_ANY, main) == "an admin of Main (admins: ada)"


def test_what_another_project_holds_does_not_exist(ada: User, hidden: Run, browser: Client) -> None:
    assert not Run.objects.visible_to(ada).exists()
    assert visible_run_ids(ada, [hidden.pk]) == set()
    for ask in (
        lambda: get_run_for_user(ada, hidden.number),
        lambda: get_controllable_run_for_user(ada, hidden.number),
        lambda: get_runs_for_user(ada, [hidden.pk]),
    ):
        with pytest.raises(Http404):
            ask()
    for address in ("", "config/", "rollouts/", "control/stop/", "phase/"):
        assert browser.get(f"/runs/{hidden.number}/{address}").status_code == 404
    assert browser.get(f"/runs/new/?from={hidden.number}").status_code == 404
    assert hidden.name not in browser.get("/runs/").content.decode()
    assert hidden.name not in browser.get("/workers/").content.decode()


def test_a_child_does_not_tell_of_a_parent_that_one_may_not_see(
    ada: User, hidden: Run, browser: Client
) -> None:
    child = launch(ada)
    Run.objects.filter(pk=child.pk).update(parent=hidden)
    for tab in ("", "config/"):
        page = browser.get(f"/runs/{child.number}/{tab}").content.decode()
        assert f"#{hidden.number}" not in page


@pytest.mark.parametrize("role", Role)
def test_who_steers(role: Role, ada: User, bob: User) -> None:
    own, others = launch(ada), launch(bob)
    become(ada, role)
    assert can_control(ada, own) == (role in {Role.RESEARCHER, Role.ADMIN})
    assert can_control(ada, others) == (role is Role.ADMIN)
    if role is Role.VIEWER:
        with pytest.raises(PermissionDenied, match="Your role in Main is viewer"):
            get_controllable_run_for_user(ada, own.number)


def test_a_viewer_reads_and_is_told_who_launches(ada: User, bob: User, browser: Client) -> None:
    story = Story(launch(bob)).start()
    become(ada, Role.VIEWER)
    page = browser.get(f"/runs/{story.run.number}/").content.decode()
    assert "do-stop" not in page
    assert "Clone" not in page
    for address in ("/runs/new/", "/datasets/upload/"):
        answer = browser.get(address)
        assert answer.status_code == 403
        assert "of Main" in answer.content.decode()
    assert "/runs/new/" not in browser.get("/runs/").content.decode()


def test_a_launch_goes_where_one_may_launch(ada: User, secret: Project) -> None:
    spec = TINY_COPY.spec
    assert services.launch_run(owner=ada, spec=spec).project == Project.objects.main()
    with pytest.raises(LaunchRefused, match="There is no such project") as refused:
        services.launch_run(owner=ada, spec=spec, project=secret)
    assert [error.path for error in refused.value.errors] == ["project"]
    become(ada, Role.CURATOR, secret)
    with pytest.raises(LaunchRefused, match="may not launch in Secret"):
        services.launch_run(owner=ada, spec=spec, project=secret)
    become(ada, Role.RESEARCHER, secret)
    assert services.launch_run(owner=ada, spec=spec).project == Project.objects.main()
    services.launch_run(owner=ada, spec=spec, project=secret)
    assert services.launch_run(owner=ada, spec=spec).project == secret


def test_a_launch_asks_when_several_projects_fit_and_says_when_none_does(
    bob: User, secret: Project
) -> None:
    become(bob, Role.RESEARCHER, secret)
    with pytest.raises(LaunchRefused, match=r"Choose the project.*Main, Secret"):
        services.launch_run(owner=bob, spec=TINY_COPY.spec)
    Membership.objects.filter(user=bob).update(role=Role.VIEWER)
    with pytest.raises(LaunchRefused, match="Your role launches no runs"):
        services.launch_run(owner=bob, spec=TINY_COPY.spec)


@pytest.fixture
def foreign(hidden: Run) -> DatasetVersion:
    """A version in the other project."""
    dataset = Dataset.objects.create(name="sums", owner=hidden.owner, project=hidden.project)
    return DatasetVersion.objects.create(
        dataset=dataset, number=1, state="ready", record_count=20, held_out_count=5
    )


def test_a_run_uses_datasets_of_its_own_project_alone(ada: User, foreign: DatasetVersion) -> None:
    domain = {
        "type": "dataset",
        "name": "dataset/sums",
        "dataset_version": str(foreign.pk),
        "held_out_items": 4,
    }
    document = {**TINY_COPY.spec.model_dump(mode="json"), "domains": [domain]}
    spec = type(TINY_COPY.spec).model_validate(document)
    with pytest.raises(LaunchRefused) as refused:
        services.launch_run(owner=ada, spec=spec)
    assert refused.value.errors[0].path == "domains.0.dataset_version"
    assert "Main has no such dataset version" in refused.value.errors[0].message
    unknown = str(foreign.pk)[:-1] + ("0" if str(foreign.pk)[-1] != "0" else "1")
    document["domains"] = [domain | {"dataset_version": unknown}]
    nowhere = preflight.check(type(spec).model_validate(document), Project.objects.main())
    assert nowhere == refused.value.errors  # it does not tell what another project holds
    inside = preflight.check(spec, foreign.dataset.project)
    assert "no such dataset version" not in " ".join(error.message for error in inside)
    with pytest.raises(Http404):
        datasets.get_version_for_user(ada, str(foreign.pk))
    with pytest.raises(Http404):
        datasets.get_dataset_for_user(ada, foreign.dataset.pk)


def test_two_projects_may_use_one_name(ada: User, foreign: DatasetVersion) -> None:
    assert datasets.may_replace(ada, "sums")
    assert not datasets.may_replace(ada, "sums", foreign.dataset.project)
    assert Dataset.objects.create(name="sums", owner=ada).project == Project.objects.main()


def test_hints_stay_in_their_project(
    ada: User, browser: Client, hidden: Run, secret: Project
) -> None:
    main = Project.objects.main()
    start = browser.get("/live/news?topics=runs,datasets").json()["cursor"]
    services.stop_run(hidden, hidden.owner)
    assert LiveEvent.objects.filter(topic=f"runs@{secret.pk}").exists()
    live.publish(live.project_topic("datasets", main.pk), "import", {"id": "1"})
    heard = browser.get(f"/live/news?topics=runs,datasets&since={start}").json()["hints"]
    assert [json.loads(text)["topic"] for text in heard] == ["datasets"]
    assert visible_topics(ada, frozenset({"runs"})) == {f"runs@{main.pk}"}
    assert visible_topics(ada, frozenset({"datasets"})) == {
        f"datasets@{main.pk}",
        f"datasets@{main.pk}:user{ada.pk}",
    }
    with pytest.raises(Http404):
        visible_topics(ada, frozenset({f"run:{hidden.pk}"}))
    with pytest.raises(ValueError, match="project_topic"):
        live.publish("runs", "state", {})


def test_somebody_without_a_project_hears_silence(ada: User) -> None:
    become(ada, None)
    assert visible_topics(ada, frozenset({"runs", "workers"})) == {"workers"}
    assert visible_topics(ada, frozenset({"runs"})) == frozenset()
