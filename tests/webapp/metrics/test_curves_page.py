"""The curves of the run page in a real browser, on the real server, under the site's policy."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.js.chromium import call, in_browser
from tests.js.conftest import chromium  # noqa: F401 - the fixture
from tests.webapp.metrics.asgi_server import RunningServer, serve
from webapp.accounts.models import User
from webapp.metrics import broadcast, live
from webapp.metrics.services import MetricPoint, append_points, supersede_after
from webapp.runs.models import Run
from webapp.runs.status import RunState

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
NAMES = [
    "<b>x</b>",
    "<img src=x onerror=alert(1)>",
    "100%",
    "奖励/正确率",
    "a//b",
    "{{ 7*7 }}",
    "=1+1",
    "denormal",
    "huge",
]


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with serve() as running:
        yield running


@pytest.fixture
def context(
    chromium: Browser,  # noqa: F811
    server: RunningServer,
    user: User,
) -> Iterator[BrowserContext]:
    client = Client()
    client.force_login(user)
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": server.url}
    context = call(chromium.new_context, viewport={"width": 1300, "height": 900})
    call(context.add_cookies, [cookie])
    yield context
    call(context.close)


@pytest.fixture
def open_run(context: BrowserContext, server: RunningServer) -> Iterator[Callable[..., Page]]:
    complaints: list[str] = []

    def note(message: Any) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    def start(run: Run, search: str = "") -> Page:
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{server.url}/runs/{run.number}/{search}")
        return page

    yield start
    assert complaints == []


def log(run: Run, key: str, values: list[float], first: int = 1, attempt: int = 1) -> None:
    """Write and tell, as the workers do."""

    def write() -> None:
        points = [MetricPoint(first + i, 1e9 + first + i, {key: v}) for i, v in enumerate(values)]
        append_points(run.pk, attempt, points)
        live.publish(f"run:{run.pk}", "metric", {"step": first})

    apart(write)


def apart(work: Callable[[], None]) -> None:
    """Use the database in a thread without a browser's event loop."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(run).result()


def chart(page: Page, key: str) -> Any:
    return page.locator(f'.chart[data-key="{key}"]')


def drawn(page: Page, key: str) -> Any:
    """The chart, once Plotly has drawn it."""
    expect(chart(page, key).locator(".main-svg").first).to_be_visible(timeout=20_000)
    return chart(page, key)


def figure(page: Page, key: str) -> dict[str, Any]:
    """What Plotly holds for a chart."""
    script = """(box) => ({
      y: [...box.data.at(-1).y], x: [...box.data.at(-1).x], traces: box.data.length,
      range: box.layout.xaxis.range, kind: box._fullLayout.xaxis.type })"""
    found: dict[str, Any] = chart(page, key).locator(".chart-plot").evaluate(script)
    return found


@in_browser
def test_live_points_join_the_curve_and_leave_the_zoom_alone(
    open_run: Callable[..., Page], run: Run
) -> None:
    log(run, "reward", [float(i % 7) for i in range(100)])
    page = open_run(run, "?smooth=0")
    foot = drawn(page, "reward").locator(".chart-foot")
    expect(foot).to_have_text("all 100 points")
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    box = chart(page, "reward").locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="Whole run")).to_be_visible()
    zoomed = figure(page, "reward")["range"]
    log(run, "reward", [3.0], first=101)
    page.wait_for_timeout(1500)
    assert figure(page, "reward")["range"] == zoomed
    assert "from=" in page.url
    page.go_back()
    expect(foot).to_have_text("all 101 points")
    assert figure(page, "reward")["y"][-1] == 3.0


@in_browser
def test_live_and_reload_draw_the_same_figure(open_run: Callable[..., Page], run: Run) -> None:
    log(run, "loss", [1.0, math.nan, 2.0])
    page = open_run(run)
    expect(drawn(page, "loss").locator(".chart-foot")).to_have_text("all 3 points · 1 not finite")
    for step in range(4, 9):
        log(run, "loss", [step / 3], first=step)
    expect(chart(page, "loss").locator(".chart-foot")).to_have_text("all 8 points · 1 not finite")
    page.wait_for_timeout(300)
    before = chart(page, "loss").locator(".chart-plot").evaluate("(b) => JSON.stringify(b.data)")
    page.reload()
    drawn(page, "loss")
    after = chart(page, "loss").locator(".chart-plot").evaluate("(b) => JSON.stringify(b.data)")
    assert rounded(before) == rounded(after)


def rounded(text: str) -> Any:
    return json.loads(text, parse_float=lambda word: round(float(word), 9))


@in_browser
def test_a_resumed_run_is_one_line_with_a_ghost_on_demand(
    open_run: Callable[..., Page], run: Run
) -> None:
    log(run, "reward", [float(i) for i in range(1, 21)])
    page = open_run(run, "?smooth=0")
    drawn(page, "reward")
    apart(lambda: supersede_after(run.pk, 2, 15))
    log(run, "reward", [99.0], first=16, attempt=2)
    expect(chart(page, "reward").locator(".chart-foot")).to_have_text("all 16 points")
    expect(chart(page, "reward").locator(".chart-value")).to_have_text("99")
    page.get_by_label("Superseded").check()
    page.wait_for_timeout(1000)
    assert figure(page, "reward")["traces"] >= 2
    assert "superseded=1" in page.url


@in_browser
def test_any_name_and_any_number_draws_without_a_complaint(
    open_run: Callable[..., Page], run: Run
) -> None:
    shapes: list[list[float]] = [[], [1.0], [math.nan], [math.inf, -math.inf], [1.797e308, -1e308]]
    shapes += [[5e-324, 1e9 + 1e-9], [-0.0, 0.0, 0.0], [5e-324] * 3, [1.797e308] * 3]
    for name, values in zip(NAMES, shapes, strict=True):
        log(run, name, values or [0.0])
    page = open_run(run)
    for name in NAMES:
        found = page.locator(".chart").filter(has=page.get_by_text(name, exact=True)).first
        found.evaluate("(article) => article.scrollIntoView()")
        expect(found.locator(".main-svg").first).to_be_visible(timeout=20_000)
        found.get_by_role("button", name="Logarithmic").click()
        found.get_by_role("button", name="as a table").click()
        expect(found.locator("table tbody tr").first).to_be_visible()
    assert page.locator("img[src=x]").count() == 0


@in_browser
def test_what_cannot_be_drawn_is_shown_as_a_table(open_run: Callable[..., Page], run: Run) -> None:
    log(run, "reward", [1e-322, 6.4e-322])
    page = open_run(run)
    expect(chart(page, "reward").locator("tbody tr")).to_have_count(2, timeout=20_000)
    expect(chart(page, "reward").locator(".chart-foot")).to_contain_text("Not drawn")


@in_browser
def test_an_empty_run_fills_by_itself(open_run: Callable[..., Page], run: Run) -> None:
    page = open_run(run)
    expect(page.get_by_text("No metric yet")).to_be_visible()
    log(run, "reward", [1.0, 2.0])
    expect(drawn(page, "reward").locator(".chart-foot")).to_have_text("all 2 points")


@in_browser
def test_a_run_that_ended_without_a_metric_promises_none(
    open_run: Callable[..., Page], run: Run
) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunState.FAILED)
    page = open_run(run)
    expect(page.get_by_text("This run ended before its first step was done.")).to_be_visible()


@in_browser
def test_search_axis_and_smoothing_are_in_the_address(
    open_run: Callable[..., Page], run: Run
) -> None:
    for key in ("reward", "loss", "num_tokens"):
        log(run, key, [float(i * 10) for i in range(50)])
    page = open_run(run)
    drawn(page, "reward")
    page.get_by_label("Find a metric").fill("rew")
    expect(chart(page, "loss")).to_be_hidden()
    page.get_by_label("Horizontal axis").select_option("tokens")
    chart(page, "reward").locator(".chart-foot").click()
    page.keyboard.press("s")
    page.wait_for_timeout(1200)
    assert all(part in page.url for part in ("q=rew", "x=tokens", "smooth=0"))
    assert figure(page, "reward")["x"][-1] == 490.0
    page.get_by_label("Find a metric").fill("nothing like it")
    expect(page.get_by_role("status").filter(has_text="No metric matches")).to_be_visible()


@in_browser
def test_hidden_charts_cost_no_request(open_run: Callable[..., Page], run: Run) -> None:
    values = {f"key{i:02}": 1.0 for i in range(60)}
    apart(lambda: append_points(run.pk, 1, [MetricPoint(1, 0.0, values)]))
    asked: list[str] = []
    page = open_run(run)
    page.on("request", lambda r: asked.append(r.url) if "/api/runs/curves?" in r.url else None)
    drawn(page, "key00")
    page.wait_for_timeout(1000)
    del asked[:]
    log(run, "key59", [3.0], first=2)
    page.wait_for_timeout(1000)
    assert len(asked) == 1
    assert "key=key59" not in asked[0]


@in_browser
def test_a_browser_has_one_connection_whichever_tabs_are_open(
    open_run: Callable[..., Page], server: RunningServer, run: Run, make_run: Callable[..., Run]
) -> None:
    log(run, "reward", [1.0])
    first, second = open_run(run), open_run(run)
    for page in (first, second):
        expect(page.locator("#live")).to_have_attribute("data-live", "live")
        drawn(page, "reward")
    assert streams(server) == 1
    log(run, "reward", [2.0], first=2)
    for page in (first, second):
        expect(chart(page, "reward").locator(".chart-foot")).to_have_text("all 2 points")
    first.close()
    log(run, "reward", [3.0], first=3)
    expect(chart(second, "reward").locator(".chart-foot")).to_have_text("all 3 points")
    assert streams(server) == 1


@in_browser
def test_a_hidden_tab_asks_for_nothing_and_catches_up_when_seen(
    open_run: Callable[..., Page], server: RunningServer, run: Run
) -> None:
    log(run, "reward", [1.0])
    page = open_run(run)
    drawn(page, "reward")
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    hide = """(is) => {
      Object.defineProperty(document, "hidden", { value: is, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    page.wait_for_timeout(500)
    assert streams(server) == 0
    log(run, "reward", [2.0], first=2)
    page.wait_for_timeout(500)
    expect(chart(page, "reward").locator(".chart-foot")).to_have_text("all 1 point")
    page.evaluate(hide, False)
    expect(chart(page, "reward").locator(".chart-foot")).to_have_text("all 2 points")
    expect(page.locator("#live")).to_have_attribute("data-live", "live")


def streams(server: RunningServer) -> int:
    return sum(len(mine) for mine in broadcast._hubs[server.loop].by_session.values())


@in_browser
def test_a_page_whose_stream_is_refused_polls_instead(
    context: BrowserContext, server: RunningServer, run: Run
) -> None:
    log(run, "reward", [1.0])
    context.route("**/live/events**", lambda route: route.fulfill(status=503, body=""))
    page = context.new_page()  # its refused request is a complaint of the browser, and meant
    page.goto(f"{server.url}/runs/{run.number}/")
    drawn(page, "reward")
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    log(run, "reward", [2.0], first=2)
    expect(chart(page, "reward").locator(".chart-foot")).to_have_text("all 2 points")


@in_browser
def test_the_report_opens_without_a_network(
    open_run: Callable[..., Page],
    chromium: Browser,  # noqa: F811
    run: Run,
    tmp_path: Path,
) -> None:
    log(run, "reward", [float(i) for i in range(3000)])
    page = open_run(run)
    with page.expect_download() as download:
        page.get_by_role("link", name="Report").click()
    saved = tmp_path / "report.html"
    download.value.save_as(saved)
    alone = chromium.new_context(offline=True)
    sheet = alone.new_page()
    errors: list[str] = []
    sheet.on("pageerror", lambda error: errors.append(str(error)))
    sheet.goto(saved.as_uri())
    expect(sheet.locator(".plotly-graph-div .main-svg").first).to_be_visible(timeout=20_000)
    assert errors == []
    alone.close()
