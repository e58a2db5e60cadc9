from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.test import Client

from tests.webapp.runs_control.story import Story, tell_six_steps
from webapp.accounts.models import User
from webapp.runs.models import Run

READ_ONLY = ["runs/runevent", "runs/attempt", "runs/checkpoint", "runs/runnotice"]


@pytest.fixture
def admin(db: None, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.mark.parametrize("page", ["runs/run", "evaluation/evalrun", *READ_ONLY])
def test_the_admin_lists_what_a_run_left(
    admin: Client, run: Run, story: Story, ingest: Callable[[Story, Run], bool], page: str
) -> None:
    tell_six_steps(story)
    ingest(story, run)
    assert admin.get(f"/admin/{page}/").status_code == 200
    assert admin.get(f"/admin/{page}/add/").status_code == 403


def test_the_admin_changes_a_name_and_never_a_state(admin: Client, run: Run) -> None:
    url = f"/admin/runs/run/{run.pk}/change/"
    assert admin.get(url).status_code == 200
    admin.post(url, {"name": "another name", "owner": run.owner.pk, "state": "succeeded"})
    run.refresh_from_db()
    assert (run.name, run.state) == ("another name", "queued")
    assert admin.post(f"/admin/runs/run/{run.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.django_db
def test_seed_makes_one_owner_however_often_it_is_called() -> None:
    call_command("seed", verbosity=0)
    call_command("seed", verbosity=0)
    owner = User.objects.get()
    assert owner.is_superuser
    assert not owner.has_usable_password()
    assert not Run.objects.exists()
