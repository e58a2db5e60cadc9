"""The way of a newcomer, from the empty home page to a run on a file of one's own.

Walked by `benchmarks/first_ten_minutes.py`, which measures it, takes the pictures of
`docs/first-ten-minutes.md` and writes its table, and by `tests/chain/test_first_ten_minutes.py`,
which walks it with shorter runs.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page, expect

SHORT_MS = 60_000
TICKETS = {
    "billing": [
        "I was charged twice for the {thing}.",
        "The invoice for the {thing} shows a wrong amount.",
        "Please send me a receipt for the {thing}.",
        "My card was refused when I paid for the {thing}.",
        "When do I get my money back for the {thing}?",
    ],
    "technical": [
        "The {thing} does not turn on any more.",
        "The {thing} shows an error after the update.",
        "How do I connect the {thing} to my phone?",
        "The {thing} keeps crashing every few minutes.",
        "The screen of the {thing} stays black.",
    ],
    "shipping": [
        "Where is the parcel with my {thing}?",
        "The {thing} was delivered to the wrong address.",
        "The box of the {thing} arrived open and wet.",
        "Can the {thing} be delivered on a Saturday?",
        "The courier says that the {thing} is still in transit.",
    ],
}
THINGS = (
    *("lamp", "camera", "speaker", "tablet", "printer", "router", "watch", "drone"),
    *("heater", "scale", "keyboard", "monitor", "charger", "microphone", "scooter", "toaster"),
)


def tickets() -> str:
    """A file as a support team has it: 240 questions, each with the queue that it belongs to."""
    rows = [
        (template.format(thing=thing), queue)
        for queue, templates in TICKETS.items()
        for template, thing in itertools.product(templates, THINGS)
    ]
    lines = (f'"{text}",{queue}' for text, queue in rows)
    return "ticket,queue\n" + "\n".join(lines) + "\n"


@dataclass
class Walk:
    """A page, its clock, and who is told of each step."""

    page: Page
    done: Callable[[str], None] = lambda _: None
    """Called at the end of a step with its name, to take its picture."""
    patience_ms: int = 900_000
    """Longest wait for a run."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Name of each step to how long it took."""
    _began: float = field(default_factory=time.perf_counter)

    def step(self, name: str) -> None:
        """A step is done."""
        self.seconds[name] = time.perf_counter() - self._began
        self.page.evaluate("scrollTo(0, 0)")
        self.done(name)
        self._began = time.perf_counter()


def see_the_home_page(walk: Walk) -> None:
    """Signed in, with a worker that listens."""
    page = walk.page
    expect(page.get_by_role("heading", name="Launch your first experiment")).to_be_visible()
    worker = page.locator(".first-step", has_text="A worker is here")
    expect(worker.locator(".icon")).to_have_count(1, timeout=SHORT_MS)
    walk.step("home")


def launch_a_preset(walk: Walk, prepare: Callable[[Page], None] = lambda _: None) -> None:
    """From the card of the tiny model to the first answers of the base model."""
    page = walk.page
    page.goto("/runs/new/")
    page.get_by_role("link", name="Edit first: Tiny model").click()
    page.wait_for_url("**preset=tiny-model**")
    prepare(page)
    expect(page.locator("#preflight .pill")).to_have_text("ready")
    walk.step("launch")
    page.locator("[data-launch]").click()
    page.wait_for_url("**/runs/1/")
    expect(page.locator(".eval-card").first).to_be_visible(timeout=walk.patience_ms)
    walk.step("base")


def wait_for_the_result(walk: Walk, name: str) -> None:
    """The curves move until the card says what changed."""
    page = walk.page
    expect(page.locator("#run-live .pill").first).to_have_text(
        "succeeded", timeout=walk.patience_ms
    )
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    expect(page.locator(".changed-headline")).to_contain_text("held-out items; the base model")
    expect(page.locator(".next-actions li").first).to_be_visible()
    walk.step(name)


def read_rollouts(walk: Walk) -> None:
    """What the model wrote, and why it got its reward."""
    page = walk.page
    page.get_by_role("link", name="Rollouts", exact=True).click()
    expect(page.locator(".completion").first).to_be_visible()
    walk.step("rollouts")


def bring_a_file(walk: Walk, file: Path) -> None:
    """A CSV becomes a dataset."""
    page = walk.page
    page.keyboard.press("Control+k")
    page.keyboard.type("upload")
    expect(page.locator("#palette [aria-selected=true]")).to_contain_text("Upload a dataset")
    walk.step("find")
    page.keyboard.press("Enter")
    page.wait_for_url("**/datasets/upload/")
    page.locator("#file").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="Choose the columns")).to_be_visible()
    walk.step("columns")
    page.get_by_role("button", name="Import").click()
    page.get_by_role("link", name="Check and launch").click(timeout=walk.patience_ms)
    page.wait_for_url("**/check/")
    walk.step("import")


def check_and_launch(walk: Walk, prepare: Callable[[Page], None] = lambda _: None) -> None:
    """What is proposed for it, what the base model makes of it, and off it goes."""
    page = walk.page
    prepare(page)
    expect(page.locator("#check-look .pill")).to_have_text("ready")
    page.get_by_role("button", name="Ask the base model").click()
    page.wait_for_url("**/check/?tryout=*")
    expect(page.locator("#glass .pill").first).to_have_text("done", timeout=walk.patience_ms)
    expect(page.locator(".tryout-try").first).to_be_visible()
    walk.step("check")
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url("**/runs/2/")


def see_both_results(walk: Walk) -> None:
    """The home page says what came out."""
    walk.page.goto("/")
    expect(walk.page.locator(".home-result")).to_have_count(2)
    walk.step("results")
