"""A full house: runs in several states, steps under glass, datasets, imports, tokens, webhooks and
workers, for tests that look at every page. `house` maps the name of a page to its address.
"""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.webapp.glass.steps import ask, finish
from tests.webapp.glass.tryouts import RIGHT, WRONG, ask_tryout, finish_tryout
from tests.webapp.stories import Story, launch
from webapp.accounts.invitations import make_invitation
from webapp.accounts.models import Project, Role, User
from webapp.api.scopes import Scope
from webapp.api.services import create_token
from webapp.comments.services import add_comment
from webapp.datasets import dispatch as dataset_dispatch
from webapp.datasets import services as datasets
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import DatasetVersion
from webapp.glass import dispatch as glass_dispatch
from webapp.runs.models import Run
from webapp.runs.services import stop_run
from webapp.webhooks.services import make_endpoint
from webapp.workers_page.services import WorkerFacts, worker_seen


@pytest.fixture
def house(ada: User, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A full house; name of a page to its address."""
    for module in (dataset_dispatch, glass_dispatch):
        monkeypatch.setattr(module, "send_task", lambda *_: True)
    bob = User.objects.create_user("bob")
    comment = add_comment(tell_success(ada), ada, "**Good** at step 120, says @bob.", step="120")
    make_invitation(Project.objects.main(), Role.VIEWER, days=7, uses=1, actor=ada)
    running = tell_running(ada)
    tell_failure(bob)
    launch(ada, "Waits behind the others")
    tell_stop(bob)
    dataset, mapping, rejected = upload_files(ada)
    tryout = finish_tryout(ask_tryout(ada, dataset), RIGHT, WRONG)
    report_workers(running)
    return {
        "home": "/",
        "runs": "/runs/",
        "launch": "/runs/new/",
        "launch-yaml": "/runs/new/",
        "run-succeeded": "/runs/1/",
        "run-running": "/runs/2/",
        "run-failed": "/runs/3/",
        "run-queued": "/runs/4/",
        "rollouts": "/runs/1/rollouts/?step=70",
        "config": "/runs/2/config/",
        "logs": "/runs/1/logs/",
        "checkpoints": "/runs/1/checkpoints/",
        "comments": "/runs/1/comments/",
        "comment-edit": f"/runs/1/comments/{comment.pk}/edit/",
        "stop": "/runs/2/control/stop/",
        "datasets": "/datasets/",
        "dataset": f"/datasets/{dataset.dataset_id}/",
        "check": f"/datasets/versions/{dataset.pk}/check/",
        "check-tried": f"/datasets/versions/{dataset.pk}/check/?tryout={tryout.pk}",
        "upload": "/datasets/upload/",
        "columns": f"/datasets/imports/{mapping}/",
        "import-rejected": f"/datasets/imports/{rejected}/",
        "workers": "/workers/",
        "find": "/search/?q=e",
        "projects": "/projects/",
        "members": "/projects/main/people/",
        "remove-member": f"/projects/main/people/{bob.pk}/remove/",
        "invitations": "/projects/main/invitations/",
        "project-settings": "/projects/main/",
        "audit": "/projects/main/audit/",
        "whole-audit": "/audit/",
        "users": "/users/",
        "account": "/account/",
        "styleguide": "/ui/styleguide/",
        "sign-out": "/accounts/logout/",
        **show_glass(ada),
        **let_programs_in(ada),
    }


def show_glass(owner: User) -> dict[str, str]:
    """Pages of steps under glass, one that is done and one that waits."""
    return {
        "glass": "/glass/",
        "glass-done": f"/glass/{finish(ask(owner)).pk}/",
        "glass-waiting": f"/glass/{ask(owner).pk}/",
    }


def let_programs_in(owner: User) -> dict[str, str]:
    """Pages for programs, with a token and a webhook."""
    token, _ = create_token(owner, "nightly evaluation", [Scope.READ], actor=owner)
    wanted = {"url": "https://example.org/hook", "kinds": ["run.succeeded"]}
    webhook = make_endpoint(owner, wanted)
    return {
        "tokens": "/accounts/tokens/",
        "revoke-token": f"/accounts/tokens/{token.pk}/revoke/",
        "webhooks": "/accounts/webhooks/",
        "webhook": f"/accounts/webhooks/{webhook.pk}/",
        "delete-webhook": f"/accounts/webhooks/{webhook.pk}/delete/",
    }


def tell_success(owner: User) -> Run:
    story = Story(launch(owner)).start()
    story.rollouts(0, "evaluate", groups=96, size=1, stage="warm-up")
    story.evaluate(0, "start", "base model", 0.04)
    for step in range(1, 61):
        story.step(step, "warm-up", **{"sft/loss": 2.0 / step})
    story.evaluate(60, "stage_end", "after warm-up", 0.31, [(0, "base model", 0.27)])
    for step in range(61, 121):
        if step % 10 == 0:
            story.rollouts(step, groups=6, size=8)
        story.step(step)
        if step % 20 == 0:
            gain = (step - 60) / 150
            compared = [(0, "base model", 0.27 + gain), (60, "after warm-up", gain)]
            title = "final" if step == 120 else f"step {step}"
            label = "final" if step == 120 else "interval"
            removed = ["checkpoints/step-000080"] if step == 120 else []
            story.checkpoint(step, best=step == 120, removed=removed)
            if step == 120:
                story.rollouts(step, "evaluate", groups=96, size=1)
            story.evaluate(step, label, title, 0.31 + gain, compared)
    story.say("\x1b[32mINFO\x1b[0m the tiny model is ready, 1,048,576 parameters\n")
    story.say("".join(f"step {i}/120  reward {i / 130:.3f}\n" for i in range(1, 121)))
    return story.finish("succeeded", "done", "The program is done: 120 steps.")


def tell_running(owner: User) -> Run:
    story = Story(launch(owner, "Longer warm-up", seed=7)).start()
    story.evaluate(0, "start", "base model", 0.02)
    for step in range(1, 83):
        story.step(step, "warm-up" if step <= 60 else "rl")
    story.checkpoint(80, best=True)
    return story.phase(83, "rollout", 18, 32, tokens_per_s=212.4).run


def tell_failure(owner: User) -> None:
    story = Story(launch(owner, "Shuffled rewards control")).start()
    for step in range(1, 20):
        story.step(step, "warm-up")
    story.finish(
        "failed",
        "out_of_memory",
        "The trainer ran out of memory in the update of step 20.",
        "Lower resources.micro_batch_tokens to 4096, or choose a smaller group_size.",
    )


def tell_stop(owner: User) -> None:
    story = Story(launch(owner, "<img src=x onerror=alert(1)> 奖励 مكافأة")).start()
    story.step(1, "warm-up").checkpoint(1)
    stop_run(story.run, owner)
    story.run.refresh_from_db()
    story.finish("stopped", "user", "Stopped by bob.")


def upload_files(owner: User) -> tuple[DatasetVersion, str, str]:
    """A dataset, and keys of a file that waits for its columns, and of one that was rejected."""
    rows = "".join(f'{{"prompt": "What is {i} + {i}?", "answer": {2 * i}}}\n' for i in range(60))
    good = datasets.store_upload(owner, "sums.jsonl", [rows.encode()])
    datasets.start_import(good, "Sums to 60", Mapping("prompt", "answer"), "")
    datasets.run_import(good.pk)
    waiting = datasets.store_upload(owner, "more.csv", [b"question,answer\nA?,004\nB?,NA\n"])
    bad = datasets.store_upload(owner, "broken.csv", [b'question,answer\nA?,1\n\nB?\nC?,\n"D,2\n'])
    datasets.start_import(bad, "Broken", Mapping("question", "answer"), "")
    datasets.run_import(bad.pk)
    good.refresh_from_db()
    assert good.version is not None
    return good.version, str(waiting.pk), str(bad.pk)


def report_workers(running: Run) -> None:
    now = timezone.now()
    for name, queue, run in (("train", "train", running.pk), ("cpu", "cpu", None)):
        worker_seen(
            WorkerFacts(
                name=f"{name}@host-a",
                boot="b",
                host="host-a",
                pid=4711,
                queues=(queue,),
                slots=1,
                devices=("2 CPU cores, 7.8 GiB",),
                versions={"torch": "2.13.0"},
                started_at=now,
                consuming_at=now,
                busy_run=run,
            )
        )
