"""How long the way of docs/first-ten-minutes.md takes on this machine, from `make run` on.

    python benchmarks/first_ten_minutes.py [--quick] [--write]

Clones this checkout into a folder of its own, runs `make run` there as a newcomer would (packages,
PostgreSQL, Valkey, the real model), opens the printed link in a headless Chromium, and walks: a
preset, its result, a CSV of one's own, the check before launch, the run on it, its result. Prints
the seconds of each step. `--write` puts the table and the pictures into docs/. `--quick` takes this
checkout as it stands and the tiny model with shorter runs, and says so in the result.

Needs the packages of tests/requirements.txt and a Chromium on PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks import walk_steps
from benchmarks.stack import LINK, ROOT, STOP_LIMIT_S, running_stack

SETUP_LIMIT_S = 900
PAGE = ROOT / "docs" / "first-ten-minutes.md"
PICTURES = ROOT / "docs" / "img"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WORDS = {
    "start": "`make run` on a fresh clone, until the link is printed",
    "home": "the link opened, the home page, a worker is here",
    "launch": "the preset *Tiny model, one minute*, its settings looked at",
    "base": "launched, until the base model's first evaluation stands",
    "changed": "until the run has ended and the card says what changed",
    "rollouts": "what the model wrote, and why it got its reward",
    "find": "Ctrl+K, “upload”",
    "columns": "the CSV uploaded, its columns proposed",
    "import": "imported, until the check before launch is open",
    "check": "the base model asked to answer eight rows, four times each",
    "own": "the run on the own file, until the card says what changed",
    "results": "the home page with both results",
}
TABLE = re.compile(r"(<!-- seconds -->\n).*?(<!-- /seconds -->)", re.DOTALL)


@contextmanager
def fresh_clone() -> Iterator[tuple[str, float]]:
    """`make run` in a new clone: the sign-in link, and the seconds until it was printed."""
    home = Path(tempfile.mkdtemp(prefix="temper-walk-"))
    clone, console = home / "temper", home / "console.txt"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, clone], check=True)
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    began = time.perf_counter()
    with console.open("wb") as out:
        process = subprocess.Popen(
            ["make", "run"],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        link = _wait_for_link(process, console)
        yield link, time.perf_counter() - began
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(home, ignore_errors=True)


def _wait_for_link(process: subprocess.Popen[bytes], console: Path) -> str:
    """The link on the console. Raises SystemExit with the console's end where none comes."""
    deadline = time.monotonic() + SETUP_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        if found := LINK.search(console.read_text(errors="replace")):
            return found[0]
        time.sleep(0.2)
    raise SystemExit(f"no link came:\n{console.read_text(errors='replace')[-3000:]}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's browser."""
    path = next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
    if path is None:
        raise SystemExit("No Chromium on PATH: install the package chromium.")
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


def shorten(page: Page) -> None:
    """The preset with few steps."""
    page.fill("[name='stages.0.steps']", "10")
    page.fill("[name='stages.1.steps']", "10")


def tiny(page: Page) -> None:
    """The own file with the tiny model and few steps."""
    page.get_by_label("Model and program").select_option("tiny-model")
    page.wait_for_url("**preset=tiny-model")
    page.get_by_label("Warm-up (steps)").fill("10")
    page.get_by_label("RL (steps)").fill("10")


def walk_through(link: str, file: Path, quick: bool, write: bool) -> tuple[walk_steps.Walk, str]:
    """The whole way; the walk, and what the last card says."""
    file.write_text(walk_steps.tickets())
    with chromium() as browser:
        page = browser.new_page(
            viewport={"width": 1280, "height": 800}, locale="en-US", base_url=link
        )
        page.set_default_timeout(walk_steps.SHORT_MS)
        expect.set_options(timeout=walk_steps.SHORT_MS)

        def picture(name: str) -> None:
            print(f"{walk.seconds[name]:>8.1f} s  {WORDS[name]}", flush=True)
            if write:
                PICTURES.mkdir(exist_ok=True)
                shot = PICTURES / f"ten-minutes-{name}.png"
                page.screenshot(path=shot, animations="disabled")

        walk = walk_steps.Walk(page, picture)
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        walk_steps.see_the_home_page(walk)
        walk_steps.launch_a_preset(walk, shorten if quick else lambda _: None)
        walk_steps.wait_for_the_result(walk, "changed")
        walk_steps.read_rollouts(walk)
        walk_steps.bring_a_file(walk, file)
        walk_steps.check_and_launch(walk, tiny if quick else lambda _: None)
        walk_steps.wait_for_the_result(walk, "own")
        headline = page.locator(".changed-headline").inner_text()
        walk_steps.see_both_results(walk)
    return walk, headline


def write_table(seconds: dict[str, float]) -> None:
    """The seconds into the page. Raises SystemExit where the page has no place for them."""
    rows = ["| step | seconds |", "|---|---|"]
    rows += [f"| {WORDS[name]} | {value:.1f} |" for name, value in seconds.items()]
    rows.append(f"| **all** | **{sum(seconds.values()):.0f}** |")
    text = PAGE.read_text()
    if TABLE.search(text) is None:
        raise SystemExit(f"{PAGE} has no place for the table.")
    table = "\n".join(rows)
    PAGE.write_text(TABLE.sub(lambda match: f"{match[1]}{table}\n{match[2]}", text))


def main() -> None:
    """Walk, print, and end with the RESULT line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="this checkout, tiny model, few steps")
    parser.add_argument("--write", action="store_true", help="table and pictures into docs/")
    options = parser.parse_args()
    if options.quick and options.write:
        parser.error("docs/ shows the whole way: --write goes without --quick")
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tickets.csv"
        if options.quick:
            began = time.perf_counter()
            with running_stack() as stack:
                seconds["start"] = time.perf_counter() - began
                walk, headline = walk_through(stack.origin + stack.sign_in_path, file, True, False)
        else:
            with fresh_clone() as (link, took):
                seconds["start"] = took
                print(f"{took:>8.1f} s  {WORDS['start']}", flush=True)
                walk, headline = walk_through(link, file, False, options.write)
    seconds |= walk.seconds
    print(f"{sum(seconds.values()):>8.1f} s  all\n{headline}")
    if options.write:
        write_table(seconds)
    rounded = {name: round(value, 1) for name, value in seconds.items()}
    result = {
        "quick": options.quick,
        "seconds": rounded,
        "total_s": round(sum(seconds.values()), 1),
        "own_result": headline,
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
