"""Watch a run: a live table in a terminal, lines elsewhere. Called by `temper watch` and `launch`.

The watch only reads, so ending it does nothing to the run. While the server restarts it waits and
says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from temper_client.client import Temper
from temper_client.errors import EndedBadlyError
from temper_client.models import Run
from temper_client.words import duration, number, plain

SHOWN_METRICS = ("reward", "kl", "eval/pass@1", "entropy", "grad_norm")
LINE_EVERY_S = 10.0
GOOD_ENDS = frozenset({"succeeded", "paused"})
TONES = {"running": "green", "succeeded": "bold green", "failed": "bold red", "lost": "red"}


def watch(temper: Temper, run: int, console: Console, every_s: float = 1.0) -> Run:
    """Show the run until it has come to rest. Raises EndedBadlyError when that is no good end."""
    screen = _Screen(console)
    temper.connection.on_wait = screen.on_wait
    states = temper.follow(run, every_s)
    last = _watch_live(states, screen) if console.is_terminal else _print_lines(states, console)
    if last.state not in GOOD_ENDS:
        raise EndedBadlyError(_ending(last))
    return last


class _Screen:
    """The live table, with what stands below it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live: Live | None = None
        self.run: Run | None = None

    def on_wait(self, why: str, pause_s: float) -> None:
        """Say that the server does not answer."""
        note = Text(f"{plain(why)} Trying again in {pause_s:g} s.", style="yellow")
        if self.live is not None and self.run is not None:
            self.live.update(Group(draw(self.run), note), refresh=True)
        else:
            self.console.print(note)


def _watch_live(states: Iterator[Run], screen: _Screen) -> Run:
    """Redraw the table with each state."""
    with Live(console=screen.console, refresh_per_second=4) as live:
        screen.live = live
        for run in states:
            screen.run = run
            live.update(draw(run), refresh=True)
    assert screen.run is not None, "follow yields at least once"
    return screen.run


def _print_lines(states: Iterator[Run], console: Console) -> Run:
    """A line when the state or the stage changes, and now and then in between."""
    shown: tuple[str, str] | None = None
    step, at = -1, 0.0
    last: Run | None = None
    for run in states:
        is_due = run.step != step and time.monotonic() - at >= LINE_EVERY_S
        if (run.state, run.stage) != shown or is_due or run.is_terminal:
            console.print(Text(line(run)), soft_wrap=True)
            shown, step, at = (run.state, run.stage), run.step, time.monotonic()
        last = run
    assert last is not None, "follow yields at least once"
    return last


def line(run: Run) -> str:
    """The run in one line."""
    parts = [f"#{run.number} {run.state}", f"step {run.step}/{run.total_steps}", plain(run.stage)]
    parts += [f"{name} {number(run.latest[name])}" for name in SHOWN_METRICS if name in run.latest]
    if run.eta_s is not None and not run.is_terminal:
        parts.append(f"ETA {duration(run.eta_s)}")
    return "  ".join(part for part in parts if part)


def draw(run: Run) -> RenderableType:
    """The run as a table of names and values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("run", Text(f"#{run.number} {plain(run.name)}", style="bold"))
    state = Text(run.state, style=TONES.get(run.state, "cyan"))
    if run.message:
        state.append(f"  {plain(run.message)}", style="dim")
    table.add_row("state", state)
    bar = ProgressBar(total=max(1, run.total_steps), completed=run.step, width=30)
    table.add_row("step", _beside(bar, f"{run.step:,} of {run.total_steps:,} {plain(run.stage)}"))
    if run.phase is not None and not run.is_terminal:
        phase = run.phase
        inner = ProgressBar(total=max(1, phase.total), completed=phase.done, width=30)
        words = f"{plain(phase.phase)} {phase.done:,} of {phase.total:,} {plain(phase.unit)}"
        table.add_row("phase", _beside(inner, words))
        table.add_row("tokens/s", number(phase.tokens_per_s))
    for name in SHOWN_METRICS:
        if name in run.latest:
            table.add_row(name, number(run.latest[name]))
    if not run.is_terminal:
        table.add_row("ETA", duration(run.eta_s))
    if run.advice:
        table.add_row("advice", Text(plain(run.advice), style="yellow"))
    return table


def _beside(bar: ProgressBar, words: str) -> RenderableType:
    """A bar and what it says."""
    row = Table.grid(padding=(0, 2))
    row.add_row(bar, Text(words))
    return row


def _ending(run: Run) -> str:
    """Why a run did not end well."""
    words = [f"Run #{run.number} is {run.state}.", run.message, run.advice]
    return " ".join(plain(word) for word in words if word)
