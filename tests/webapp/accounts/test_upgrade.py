"""An installation from before there were projects: everything goes to the main one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.db import IntegrityError, connection
from django.db.migrations.executor import MigrationExecutor

from training_core.contract.presets import TINY_COPY
from webapp.accounts.invitations import make_invitation
from webapp.accounts.models import Membership, Project, Role, User
from webapp.comments.services import add_comment
from webapp.datasets.access import imports_for
from webapp.datasets.models import Dataset
from webapp.runs.access import can_control
from webapp.runs.models import Run

BEFORE = [
    ("accounts", "0001_initial"),
    ("runs", "0001_initial"),
    ("datasets", "0002_import_attempts"),
]


def migrate(targets: list[tuple[str, str]]) -> Any:
    """Bring the schema there; the models as they were."""
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.fixture
def before(transactional_db: None) -> Iterator[Any]:
    """The models of before; afterwards the schema is today's again."""
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    Project.objects.all().delete()
    yield migrate(BEFORE)
    migrate(newest)


def test_an_upgrade_puts_all_there_is_in_the_main_project(before: Any) -> None:
    people = before.get_model("accounts", "User").objects
    ada, bob, root = (
        people.create(username=name, password=make_password(None), is_superuser=name == "root")
        for name in ("ada", "bob", "root")
    )
    spec = TINY_COPY.spec.model_dump(mode="json")
    run = before.get_model("runs", "Run").objects.create(
        number=1, name="Old", owner_id=ada.pk, spec=spec, spec_version=1, total_steps=10
    )
    dataset = before.get_model("datasets", "Dataset").objects.create(name="sums", owner_id=bob.pk)
    job = before.get_model("datasets", "DatasetImport").objects.create(
        owner_id=bob.pk, path="x.csv", file_name="x.csv", size_bytes=3, total=6
    )
    migrate(MigrationExecutor(connection).loader.graph.leaf_nodes())

    main = Project.objects.get()
    assert main.slug == "main"
    roles = dict(Membership.objects.values_list("user__username", "role"))
    assert roles == {"ada": "researcher", "bob": "researcher", "root": "admin"}
    assert Run.objects.get(pk=run.pk).project == main
    assert Dataset.objects.get(pk=dataset.pk).project == main
    new_ada, new_bob, new_root = (User.objects.get(pk=each.pk) for each in (ada, bob, root))
    assert imports_for(new_bob).get(pk=job.pk).project == main
    old = Run.objects.get(pk=run.pk)
    assert [can_control(user, old) for user in (new_ada, new_bob, new_root)] == [True, False, True]


def test_an_empty_installation_has_the_main_project(before: Any) -> None:
    migrate(MigrationExecutor(connection).loader.graph.leaf_nodes())
    assert [str(project) for project in Project.objects.all()] == ["Main"]
    assert not Membership.objects.exists()


def newest() -> list[tuple[str, str]]:
    return MigrationExecutor(connection).loader.graph.leaf_nodes()


def test_a_way_back_and_forth_keeps_runs_and_datasets(before: Any) -> None:
    migrate(newest())
    main, other = Project.objects.main(), Project.objects.create(slug="other", name="Other")
    ada, root = User.objects.create_user("ada"), User.objects.create_superuser("root")
    make_invitation(other, Role.VIEWER, days=1, uses=1, actor=root)
    spec = TINY_COPY.spec.model_dump(mode="json")
    for number, project in enumerate((main, other), start=1):
        values = {"spec": spec, "spec_version": 1, "total_steps": 10, "project": project}
        run = Run.objects.create(number=number, name="Run", owner=ada, **values)
        Dataset.objects.create(name=f"sums {number}", owner=root, project=project)
        add_comment(run, ada, "Look.")
    migrate(BEFORE)
    migrate(newest())
    assert [run.project.slug for run in Run.objects.order_by("number")] == ["main", "main"]
    assert sorted(Dataset.objects.values_list("name", "project__slug", "owner__username")) == [
        ("sums 1", "main", "root"),
        ("sums 2", "main", "root"),
    ]
    roles = dict(Membership.objects.values_list("user__username", "role"))
    assert roles == {"ada": "researcher", "root": "admin"}


def test_the_way_back_loses_no_dataset_whose_name_is_used_twice(before: Any) -> None:
    migrate(newest())
    other, root = Project.objects.create(slug="other"), User.objects.create_superuser("root")
    for project in (Project.objects.main(), other):
        Dataset.objects.create(name="sums", owner=root, project=project)
    with pytest.raises(IntegrityError):
        migrate(BEFORE)
    migrate(newest())
    assert Dataset.objects.count() == 2
