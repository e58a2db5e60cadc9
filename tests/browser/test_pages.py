"""Rollouts, logs, datasets, keys and themes in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.session import Watched
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.datasets import dispatch as dataset_dispatch
from webapp.datasets import services as datasets
from webapp.datasets.models import DatasetImport

pytestmark = pytest.mark.browser


@pytest.fixture
def story(ada: User) -> Story:
    """A run with two steps of rollouts."""
    story = Story(launch(ada)).start()
    for step in (61, 62):
        story.step(step).rollouts(step, groups=3, size=4)
    return story


def test_arrow_keys_walk_through_rollouts(watched: Watched, ada: User, story: Story) -> None:
    page = watched.signed_in(ada)
    page.goto("/runs/1/rollouts/")
    expect(page.locator(".completion")).to_have_count(4)
    chosen = page.locator(".groups [aria-current=true] .group-prompt")
    first = chosen.inner_text()
    page.keyboard.press("ArrowRight")
    expect(chosen).not_to_have_text(first)
    expect(page).to_have_url(re.compile(r"group=\d+"))
    page.keyboard.press("ArrowLeft")
    expect(chosen).to_have_text(first)
    page.keyboard.press("[")
    expect(page.locator(".group h2")).to_have_text("Step 61")
    page.reload()
    expect(page.locator(".group h2")).to_have_text("Step 61")  # the view lives in the address
    page.locator("select[name=outcome]").select_option("unscored")
    expect(page.get_by_role("heading", name="No group fits")).to_be_visible()
    expect(page).to_have_url(re.compile("outcome=unscored"))
    page.go_back()
    expect(page.locator(".groups-head")).to_have_text("3 groups")


def test_what_the_reader_chose_is_not_lost_to_what_follows_the_run(
    watched: Watched, ada: User, story: Story
) -> None:
    """The page follows the run by itself while the reader's choice is on its way."""
    page = watched.signed_in(ada)
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.resource_type == "document":
            route.continue_()
        else:
            held.append(route)

    page.route("**/runs/1/rollouts/**", hold)
    with page.expect_request("**/rollouts/browse/**"):
        page.goto("/runs/1/rollouts/")
    chosen = page.locator(".groups [aria-current=true] .group-prompt")
    first = chosen.inner_text()
    with page.expect_request("**/rollouts/?*group=*"):
        page.keyboard.press("ArrowRight")
    for route in held:
        with page.expect_response(route.request.url) as answer:
            route.continue_()
        answer.value.finished()
    expect(chosen).not_to_have_text(first)


def test_the_rollouts_follow_a_live_run_until_somebody_reads(
    watched: Watched, ada: User, story: Story
) -> None:
    page = watched.signed_in(ada)
    page.goto("/runs/1/rollouts/")
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    story.rollouts(63)
    expect(page.locator(".group h2")).to_have_text("Step 63")
    page.locator(".groups a").nth(1).click()
    expect(page).to_have_url(re.compile(r"group=\d+"))
    story.rollouts(64)
    expect(page.locator("[data-latest]")).to_have_text("Latest: step 64")
    expect(page.locator(".group h2")).to_have_text("Step 63")


def test_going_back_shows_whole_pages(watched: Watched, ada: User, story: Story) -> None:
    """Each page has asked its own address for a part of itself by then, as its scripts do."""
    page = watched.signed_in(ada)
    walk = ["/runs/", "/runs/1/", "/runs/1/rollouts/", "/datasets/", "/workers/", "/runs/new/"]
    for address in walk:
        page.goto(address)
        page.evaluate("htmx.ajax('GET', location.href, { target: '#announce', swap: 'none' })")
    for address in reversed(walk[:-1]):
        page.go_back()
        expect(page).to_have_url(re.compile(f"{address}$"))
        expect(page.locator("#live")).to_be_visible()
        expect(page.locator("main h1")).to_be_visible()


def test_the_log_grows_by_itself(watched: Watched, ada: User, story: Story) -> None:
    story.say("first line\n")
    page = watched.signed_in(ada)
    page.goto("/runs/1/logs/")
    expect(page.locator("#log")).to_contain_text("first line")
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    story.say("\x1b[31msecond <b>line</b>\x1b[0m\n")
    expect(page.locator("#log .ansi-red")).to_have_text("second <b>line</b>")


def test_a_dataset_from_file_to_run(
    watched: Watched, ada: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_dispatch, "send_task", lambda *_: True)
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 and more")
    good = tmp_path / "sums.csv"
    good.write_text("question,answer\n" + "".join(f"{i} + 1?,{i + 1}\n" for i in range(30)))
    watched.expected.append("422")
    page = watched.signed_in(ada)
    page.goto("/datasets/")
    page.get_by_role("link", name="Upload a dataset").click()
    page.locator("#file").set_input_files(bad)
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#upload-error")).to_contain_text("It is Parquet.")
    drop(page, good)
    expect(page.get_by_role("heading", name="Choose the columns")).to_be_visible()
    expect(page.locator(".record")).to_have_count(5)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("Waits for a worker of the cpu queue.")).to_be_visible()
    datasets.run_import(DatasetImport.objects.get().pk)
    expect(page.get_by_text("30 records")).to_be_visible()
    page.get_by_role("link", name="Check and launch").click()
    expect(page.get_by_label("Compare answers")).to_have_value("numbers")
    expect(page.locator(".check-reply-odd")).to_have_count(0)
    page.get_by_label("Domain").fill("Sums!")
    expect(page.locator("#check-look .pill")).to_have_text("1 to mend")
    page.get_by_label("Domain").fill("dataset/sums")
    expect(page.locator("#check-look .pill")).to_have_text("ready")
    page.get_by_role("button", name="All settings").click()
    expect(page.locator("[id='field-domains.0.dataset_version'] option:checked")).to_contain_text(
        "sums v1"
    )
    expect(page.locator("#preflight .pill")).to_have_text("ready")


def drop(page: Page, path: Path) -> None:
    """Let go of a file over the drop zone."""
    transfer = page.evaluate_handle(
        """([name, text]) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([text], name, { type: "text/csv" }));
          return transfer;
        }""",
        [path.name, path.read_text()],
    )
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": transfer})


def test_keys_lead_everywhere_and_can_be_switched_off(watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada)
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/datasets/")
    page.keyboard.press("n")
    page.wait_for_url("**/runs/new/")
    page.locator("[id='field-name']").press("g")  # typing is typing
    page.locator("[id='field-name']").press("w")
    expect(page).to_have_url(re.compile("/runs/new/"))
    page.locator("h1").click()
    page.keyboard.press("?")
    sheet = page.locator("#keys")
    expect(sheet).to_be_visible()
    expect(sheet).to_contain_text("Search on this page")
    sheet.locator("[data-keys-switch]").uncheck()
    sheet.get_by_role("button", name="Close").click()
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_timeout(200)
    expect(page).to_have_url(re.compile("/runs/new/"))


def test_the_theme_is_kept(watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada)
    html = page.locator("html")
    toggle = page.locator("[data-theme-toggle]")
    toggle.click()
    expect(html).to_have_attribute("data-theme", "light")
    toggle.click()
    page.goto("/workers/")
    expect(html).to_have_attribute("data-theme", "dark")
    page.locator("[data-theme-toggle]").click()
    expect(html).not_to_have_attribute("data-theme", re.compile("."))


def test_the_skip_link_leads_past_the_rail(watched: Watched, ada: User) -> None:
    page: Page = watched.signed_in(ada)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
