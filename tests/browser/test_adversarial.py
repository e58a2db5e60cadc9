"""The field's adversarial corpora on the pages: nothing runs, nothing breaks, the console is clean.

The API meets the same corpora in `tests/webapp/api/test_adversarial.py`.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser.looks import WIDE
from tests.browser.session import Watched
from tests.browser.test_screenshots import assert_fits
from tests.webapp.api.test_adversarial import KEYS, NUMBERS
from tests.webapp.hostile import NAMES
from tests.webapp.stories import Story, launch, make_group
from training_core.contract.rollouts import RolloutGroupRecord
from webapp.accounts.members import make_project
from webapp.accounts.models import Project, User
from webapp.api.scopes import Scope
from webapp.api.services import create_token
from webapp.comments.services import add_comment
from webapp.datasets import dispatch as dataset_dispatch
from webapp.datasets import services as datasets
from webapp.datasets.mapping import Mapping
from webapp.runs.models import Run
from webapp.webhooks.services import make_endpoint
from webapp.workers_page.services import WorkerFacts, worker_seen

pytestmark = pytest.mark.browser

MARKUP = "\n".join(NAMES)
SHAPES = {
    "shape/constant": lambda _: 0.5,
    "shape/spike": lambda step: 1e6 if step == 30 else 0.0,
    "shape/all NaN": lambda _: math.nan,
    "shape/NaN at the ends": lambda step: step if 10 < step < 50 else math.nan,
    "shape/alternating": lambda step: (-1.0) ** step,
    "shape/offset": lambda step: 1e9 + 1e-7 * step,
    "shape/decades": lambda step: 10.0 ** (step % 10 - 5),
    "shape/infinite": lambda step: math.inf if step % 7 == 0 else float(step),
    "shape/numbers": lambda step: NUMBERS[step % len(NUMBERS)],
}
STEPS = 60


def hostile_groups(step: int) -> list[RolloutGroupRecord]:
    """A group for each name: in its prompt, its answer, its completions and their explanations."""
    groups = []
    for index, name in enumerate(NAMES):
        group = make_group(step, index, "train", 4, "rl").model_dump()
        group["messages"] = [{"role": "user", "content": f"{name}\n{MARKUP}"}]
        group["answer"] = name
        for rollout in group["rollouts"]:
            rollout["text"] = rollout["completion"] = f"{name}<|im_end|>"
            for score in rollout["scores"]:
                score["explanation"] = f"Because {name}"
        groups.append(RolloutGroupRecord.model_validate(group))
    return groups


def tell_hostile_run(owner: User) -> Run:
    """A run in which every text that somebody else chose is hostile, and every series odd."""
    story = Story(launch(owner, NAMES[1], notes=MARKUP)).start()
    story.evaluate(0, "start", NAMES[2], 0.04)
    for step in range(1, STEPS + 1):
        values = {name: shape(step) for name, shape in SHAPES.items()}
        values |= dict.fromkeys(KEYS, step / STEPS) if step > STEPS - 2 else {}
        story.step(step, **values)
    story.write_rollouts(STEPS, hostile_groups(STEPS)).checkpoint(STEPS, best=True)
    story.say(f"\x1b[31m{MARKUP}\x1b]0;title\x07\x1b[999;999H\n" + "x" * 20_000 + "\n")
    run = story.finish("failed", "bad_data", f"It said {NAMES[1]}", f"Try {NAMES[3]}")
    shutil.rmtree(run.run_dir.checkpoint(STEPS))  # somebody has tidied up by hand
    return run


@pytest.fixture
def pages(ada: User, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses of a house that is hostile in every corner."""
    monkeypatch.setattr(dataset_dispatch, "send_task", lambda *_: True)
    gone = User.objects.create_superuser("gone")
    run = tell_hostile_run(gone)
    wide = Story(launch(ada, "2,000 metrics")).start()
    wide.step(1, **{f"many/{index:04d}/value": float(index) for index in range(2_000)})
    for name in NAMES:
        launch(ada, name.strip())
        add_comment(run, gone, f"{name}\n\n[{name}]({name}) `{name}` @{name}")
    gone.is_active = False
    gone.save()
    rows = "".join(
        f'"{name.replace(chr(34), chr(34) * 2)} {i}",{i}\n' for i in range(3) for name in NAMES
    )
    good = datasets.store_upload(ada, f"{NAMES[1]}.csv", [f"<b>q</b>,{NAMES[8]}\n{rows}".encode()])
    datasets.start_import(good, NAMES[1], Mapping("<b>q</b>", NAMES[8]), "")
    datasets.run_import(good.pk)
    good.refresh_from_db()
    assert good.version is not None, good.message
    bad = datasets.store_upload(ada, "</script>.jsonl", [f'{{"{NAMES[3]}": 1}}\n[]\n'.encode()])
    make_project(NAMES[1], ada)
    create_token(ada, NAMES[1], [Scope.READ], actor=ada)
    make_endpoint(ada, {"url": "https://example.org/?<b>x</b>", "kinds": ["run.failed"]})
    tell_of_a_worker(run)
    at = f"/runs/{run.number}/"
    tabs = ("", "config/", "logs/", "checkpoints/", "comments/")
    return [
        *("/", "/runs/", "/models/", "/datasets/", "/workers/", "/projects/", "/audit/"),
        *("/accounts/tokens/", "/accounts/webhooks/", "/glass/"),
        *(f"{at}{tab}" for tab in tabs),
        f"{at}rollouts/?step={STEPS}",
        f"/runs/{wide.run.number}/",
        f"/runs/new/?from={run.number}",
        f"/datasets/{good.version.dataset_id}/",
        f"/datasets/versions/{good.version.pk}/check/",
        f"/datasets/imports/{bad.pk}/",
        *(
            f"/search/?q={name}"
            for name in ("<b>x</b>", "%22%3E%3Csvg", "奖励", "%00", "{{ 7*7 }}")
        ),
    ]


def tell_of_a_worker(run: Run) -> None:
    """A worker of a strange name that has been silent since."""
    facts = WorkerFacts(
        name=f"train@{NAMES[1]}",
        boot="b",
        host=NAMES[2],
        pid=4711,
        queues=("train",),
        slots=1,
        devices=(NAMES[3],),
        versions={NAMES[0]: NAMES[1]},
        started_at=run.created_at,
        consuming_at=run.created_at,
        busy_run=run.pk,
    )
    worker_seen(facts)


@pytest.fixture
def page(watched: Watched, ada: User) -> Iterator[Page]:
    """A page on which no dialog may open: none is ours."""
    opened: list[str] = []

    def refuse(dialog: Dialog) -> None:
        opened.append(dialog.message)
        dialog.dismiss()

    page = watched.signed_in(ada, viewport=WIDE)
    page.on("dialog", refuse)
    yield page
    assert not opened


def test_nothing_hostile_runs_on_any_page(page: Page, pages: list[str]) -> None:
    injected = "document.querySelectorAll(\"img[src='x'], [onload], [onerror]\").length"
    for address in pages:
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        expect(page.locator("h1").first).to_be_visible()
        height = page.evaluate("document.documentElement.scrollHeight")
        for top in range(0, min(height, 12_000), 900):  # what is drawn when it comes into view
            page.evaluate(f"scrollTo(0, {top})")
            page.wait_for_timeout(60)
        assert page.evaluate(injected) == 0, address
        assert "49 {%" not in page.content(), address
        assert_fits(page, address)


def test_every_series_is_drawn_or_said_to_have_no_number(page: Page, pages: list[str]) -> None:
    page.goto(f"/runs/{Run.objects.order_by('number').first().number}/")
    page.get_by_placeholder("Find a metric").fill("shape/")
    for name in SHAPES:
        panel = page.locator("#curves article", has_text=name)
        panel.scroll_into_view_if_needed()
        expect(panel.locator(".js-plotly-plot, .state").first).to_be_visible()


def test_the_palette_shows_names_as_they_are(page: Page, pages: list[str]) -> None:
    for name in ("<img src=x", "$latex$", "مكافأة"):
        page.keyboard.press("Control+k")
        page.keyboard.type(name)
        expect(page.locator("#palette [role=option]").first).to_be_visible()
        page.keyboard.press("Escape")
    assert Project.objects.filter(name=NAMES[1]).exists()
