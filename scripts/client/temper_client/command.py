"""The command `temper`: arguments to calls of the client, answers to the terminal."""

from __future__ import annotations

import argparse
import getpass
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from temper_client.arguments import parser
from temper_client.client import DEEDS, Temper
from temper_client.config import Config, clean_url, load_config, save_config
from temper_client.errors import EndedBadlyError, RefusedError, TemperError
from temper_client.exporting import export_checkpoint
from temper_client.models import Import, Run
from temper_client.watching import line, watch
from temper_client.words import duration, log_text, number, plain, size

Do = Callable[[Temper, argparse.Namespace, Console], None]


def main(arguments: list[str] | None = None) -> None:
    """Do what was typed, and exit with the code that `temper --help` explains."""
    asked = parser().parse_args(arguments)
    console = Console(highlight=False, markup=False)
    try:
        if asked.command == "login":
            _login(asked, console)
            return
        config = load_config()
        waiting = Console(stderr=True, highlight=False, markup=False)
        with Temper(*config, on_wait=lambda why, _: waiting.print(plain(why))) as temper:
            COMMANDS[asked.command](temper, asked, console)
    except TemperError as error:
        _complain(error, asked)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say_how_to_go_on(asked)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _login(asked: argparse.Namespace, console: Console) -> None:
    """Ask for a token, try it, remember it."""
    url = clean_url(asked.url)
    if asked.token_stdin:
        token = sys.stdin.readline().strip()
    else:
        console.print(f"Make a token at {url}/accounts/tokens/", soft_wrap=True)
        token = getpass.getpass("Token: ").strip()
    with Temper(url, token, patience_s=0) as temper:
        me = temper.me()
    path = save_config(Config(url, token))
    console.print(
        f"Signed in as {plain(me.user)} until {me.expires_at:%Y-%m-%d}, with the scopes "
        f"{', '.join(me.scopes)}; remembered in {path}.",
        soft_wrap=True,
    )


def _me(temper: Temper, _: argparse.Namespace, console: Console) -> None:
    me = temper.me()
    console.print(f"{plain(me.user)} at {temper.connection.url}")
    console.print(
        f"token {plain(me.token)}: {', '.join(me.scopes)}, until {me.expires_at:%Y-%m-%d}"
    )
    for project in me.projects:
        away = ", archived" if project.is_archived else ""
        console.print(f"project {project.slug} ({plain(project.name)}): {project.role}{away}")


def _launch(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    if not asked.spec and not asked.preset:
        raise TemperError("Name a YAML file, or a preset with --preset; `temper presets` has them.")
    if asked.spec:
        spec: str | dict[str, object] = _read_text(asked.spec)
    else:
        spec = dict(temper.preset(asked.preset).spec)
        spec |= {"name": asked.name} if asked.name else {}
    if asked.check:
        found = temper.check(spec, project=asked.project)
        console.print(f"{plain(found.name)}: {found.steps:,} steps, {found.rollouts:,} rollouts")
        console.print(f"at most {found.most_tokens:,} tokens and {size(found.disk_bytes)} on disk")
        console.print(f"{found.waiting} runs wait before it for {found.slots} slots")
        for warning in found.warnings:
            console.print(f"warning: {plain(warning)}", soft_wrap=True)
        return
    run = temper.launch(
        spec,
        preset=asked.preset or "",
        parent=asked.parent,
        project=asked.project,
        key=asked.key,
    )
    _begun(temper, asked, console, run)


def _restart(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    spec = _read_text(asked.spec) if asked.spec else None
    run = temper.restart(asked.run, asked.checkpoint, spec, project=asked.project)
    _begun(temper, asked, console, run)


def _begun(temper: Temper, asked: argparse.Namespace, console: Console, run: Run) -> None:
    """Say where the new run is, and watch it if that was asked for."""
    where = f"{temper.connection.url}/runs/{run.number}/"
    console.print(f"#{run.number} {plain(run.name)} is queued: {where}", soft_wrap=True)
    asked.run = run.number
    if asked.watch:
        watch(temper, run.number, console)


def _watch(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    watch(temper, asked.run, console)


def _runs(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    filters = {"state": asked.state, "owner": asked.owner, "project": asked.project}
    runs = temper.runs(most=asked.most, q=asked.search, **filters)
    if asked.json:
        for run in runs:
            print(run.model_dump_json())
        return
    table = _table("run", "name", "state", "step", "reward", "ETA", "owner", "project")
    for run in runs:
        table.add_row(
            f"#{run.number}",
            Text(plain(run.name)),
            run.state,
            f"{run.step:,}/{run.total_steps:,}",
            number(run.latest.get("reward")),
            "" if run.is_terminal else duration(run.eta_s),
            Text(plain(run.owner)),
            run.project,
        )
    _show(console, table, "No runs; `temper launch --preset tiny-model` starts one.")


def _spec(temper: Temper, asked: argparse.Namespace, _: Console) -> None:
    sys.stdout.write(temper.spec_yaml(asked.run))


def _logs(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    offset, attempt, shown = 0, asked.attempt, 0
    while True:
        is_over = temper.run(asked.run).is_terminal
        piece = temper.log(asked.run, attempt, offset)
        if attempt is None and offset and piece.attempt != shown:
            offset = 0  # a new attempt begins a new console
            continue
        shown = piece.attempt
        sys.stdout.write(log_text(piece.text, colours=console.is_terminal))
        sys.stdout.flush()
        has_more = piece.end > offset
        offset = piece.end
        if not has_more and (is_over or not asked.follow):
            return
        if not has_more:
            time.sleep(1)


def _curves(temper: Temper, asked: argparse.Namespace, _: Console) -> None:
    sys.stdout.write(temper.curves_csv(asked.run, asked.key))


def _deed(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    console.print(line(temper.steer(asked.run, asked.command)), soft_wrap=True)


def _delete(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    temper.delete(asked.run, asked.name)
    console.print(f"Run #{asked.run} is deleted.")


def _import(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    names = ("name", "project", "prompt", "answer", "demonstration", "held_out_percent")
    job = temper.upload(asked.file, **{name: getattr(asked, name) for name in names})
    console.print(f"Uploaded {plain(job.file_name)}, {size(job.size_bytes)}; import {job.id}")
    if asked.no_wait:
        return
    with console.status("Importing…") as status:
        while job.state in {"queued", "running"}:
            done = 100 * job.done // job.total if job.total else 0
            status.update(f"Importing, {done} % of the file read")
            time.sleep(0.5)
            job = temper.import_(job.id)
    _say_import(job, console)


def _say_import(job: Import, console: Console) -> None:
    """How an import ended. Raises EndedBadlyError for one that was rejected."""
    for error in job.errors[:20]:
        place = f"row {error.row}" + (f", {plain(error.column)}" if error.column else "")
        console.print(f"{place}: {plain(error.message)}", soft_wrap=True)
    if job.version is None:
        raise EndedBadlyError(f"The import is {job.state}: {plain(job.message)}")
    version = job.version
    console.print(
        f"{plain(job.name)} v{version.number}: {version.record_count:,} records, "
        f"{version.held_out_count:,} of them held out; dataset_version: {version.id}",
        soft_wrap=True,
    )


def _datasets(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    table = _table("name", "project", "version", "records", "held out", "dataset_version")
    for dataset in temper.datasets(asked.search, asked.project):
        if asked.json:
            print(dataset.model_dump_json())
            continue
        newest = dataset.versions[0]
        counts = f"{newest.record_count:,}", f"{newest.held_out_count:,}"
        name = Text(plain(dataset.name))
        table.add_row(name, dataset.project, f"v{newest.number}", *counts, str(newest.id))
    if not asked.json:
        _show(console, table, "No datasets; `temper import FILE` makes one.")


def _presets(temper: Temper, _: argparse.Namespace, console: Console) -> None:
    table = _table("preset", "minutes", "teaches")
    for preset in temper.presets():
        table.add_row(preset.slug, f"{preset.minutes:g}", Text(plain(preset.teaches)))
    _show(console, table, "There are no presets.")


COMMANDS: dict[str, Do] = {
    "me": _me,
    "launch": _launch,
    "restart": _restart,
    "watch": _watch,
    "runs": _runs,
    "spec": _spec,
    "logs": _logs,
    "curves": _curves,
    "delete": _delete,
    "export": export_checkpoint,
    "import": _import,
    "datasets": _datasets,
    "presets": _presets,
    **dict.fromkeys(DEEDS, _deed),
}


def _read_text(name: str) -> str:
    """A file's text, or standard input. Raises TemperError."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemperError(f"{name} cannot be read: {error}.") from error


def _complain(error: TemperError, asked: argparse.Namespace) -> None:
    """Say what is wrong; each field error with its line in the file that was sent."""
    out = Console(stderr=True, highlight=False, markup=False)
    if isinstance(error, RefusedError) and error.errors:
        file = getattr(asked, "spec", None) or getattr(asked, "file", None) or ""
        for one in error.errors:
            place = f"{file}:{one.line}: " if one.line else f"{file}: " if file else ""
            field = f"{plain(one.field)}: " if one.field else ""
            out.print(f"{place}{field}{plain(one.message)}", soft_wrap=True)
        return
    out.print(plain(str(error)), soft_wrap=True)


def _say_how_to_go_on(asked: argparse.Namespace) -> None:
    """After Ctrl+C: what became of the run or export that was waited for."""
    out = Console(stderr=True, highlight=False, markup=False)
    number_ = getattr(asked, "run", None)
    if asked.command == "export":
        out.print("\nThe server goes on with the export. The same command goes on from here.")
    elif number_ is not None:
        out.print(f"\nRun #{number_} goes on. Watch it again with: temper watch {number_}")
        out.print(f"End it with: temper stop {number_}")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _show(console: Console, table: Table, empty: str) -> None:
    console.print(table if table.row_count else empty, soft_wrap=not table.row_count)
