"""What can be typed after `temper`."""

from __future__ import annotations

import argparse
from pathlib import Path

from temper_client.errors import EXIT_CODES

ENDING = "exit codes:\n" + "\n".join(f"  {code:>3}  {words}" for code, words in EXIT_CODES.items())


def parser() -> argparse.ArgumentParser:
    """The whole command."""
    top = argparse.ArgumentParser(
        prog="temper",
        description="Launch, watch and steer runs of a Temper server.",
        epilog=ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    login = commands.add_parser("login", help="remember a server and a token")
    login.add_argument("url", help="address of the server, such as http://127.0.0.1:8000")
    login.add_argument(
        "--token-stdin", action="store_true", help="read the token from standard input"
    )
    commands.add_parser("me", help="whom the token acts for, and its scopes")
    _add_launch(commands)
    _add_runs(commands)
    _add_deeds(commands)
    _add_export(commands)
    _add_data(commands)
    return top


def _add_launch(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """launch, restart, watch."""
    launch = commands.add_parser("launch", help="queue a run from a YAML file or a preset")
    launch.add_argument("spec", nargs="?", help="YAML file of the RunSpec; - for standard input")
    launch.add_argument("--preset", help="slug of a preset to launch, or that the file came from")
    launch.add_argument("--name", help="another name for a preset's run")
    launch.add_argument("--parent", type=int, help="run that the file came from")
    launch.add_argument("--key", default="", help="launch once for this key, however often called")
    launch.add_argument("--check", action="store_true", help="only say what a launch would do")
    restart = commands.add_parser("restart", help="a new run from a run's checkpoint")
    _add_run(restart)
    restart.add_argument("--checkpoint", default="latest", help="latest (default), best, or a step")
    restart.add_argument("--spec", help="YAML file to go on with instead of the run's own")
    for one in (launch, restart):
        one.add_argument("--project", default="", help="slug of its project; `temper me` has yours")
        one.add_argument("--watch", action="store_true", help="watch it until it has ended")
    watch = commands.add_parser("watch", help="watch a run; Ctrl+C leaves it running")
    _add_run(watch)


def _add_runs(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """runs, spec, logs, curves."""
    runs = commands.add_parser("runs", help="list runs, the newest first")
    runs.add_argument("--state", action="append", help="only this state; repeat it for more")
    runs.add_argument("--owner", help="only this person's")
    runs.add_argument("--project", help="only of this project")
    runs.add_argument("--search", help="words of the name")
    runs.add_argument("--most", type=int, default=20, help="how many (default: 20)")
    runs.add_argument("--json", action="store_true", help="one JSON document a line")
    spec = commands.add_parser("spec", help="print a run's spec as YAML")
    _add_run(spec)
    logs = commands.add_parser("logs", help="print a trainer's console")
    _add_run(logs)
    logs.add_argument("--attempt", type=int, help="attempt (default: the newest)")
    logs.add_argument("--follow", "-f", action="store_true", help="go on until the run has ended")
    curves = commands.add_parser("curves", help="print points of metrics as CSV")
    _add_run(curves)
    curves.add_argument("key", nargs="+", help="metric, such as reward")


def _add_deeds(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """What a run can be asked to do."""
    for deed, words in {
        "stop": "save the last whole step and end",
        "pause": "save and free the device",
        "resume": "go on from the newest checkpoint",
        "evaluate": "evaluate after the current step",
        "checkpoint": "save after the current step",
        "archive": "take it out of the lists",
        "unarchive": "bring it back into the lists",
    }.items():
        _add_run(commands.add_parser(deed, help=f"{words}"))
    delete = commands.add_parser("delete", help="delete a finished run for good")
    _add_run(delete)
    delete.add_argument("--name", required=True, help="its name, to show that you mean this one")


def _add_export(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """export."""
    export = commands.add_parser("export", help="make a checkpoint into a model folder, fetch it")
    _add_run(export)
    export.add_argument(
        "--checkpoint", default="latest", type=_checkpoint, help="latest (default), best, or a step"
    )
    export.add_argument(
        "--dtype",
        default="float32",
        choices=("float32", "bfloat16"),
        help="float32 (default) keeps the weights bit for bit, bfloat16 halves their size",
    )
    export.add_argument("-o", "--output", type=Path, help="folder to write (default: named by run)")
    export.add_argument("--key", default="", help="ask once for this key, however often called")
    export.add_argument("--no-wait", action="store_true", help="only ask; fetch it another time")


def _add_data(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """import, datasets, presets."""
    upload = commands.add_parser("import", help="upload a CSV or JSONL file as a dataset version")
    upload.add_argument("file", type=Path)
    upload.add_argument("--name", help="dataset (default: the file's name)")
    upload.add_argument("--project", help="slug of its project (default: of your last upload)")
    upload.add_argument("--prompt", help="column of the prompt (default: guessed)")
    upload.add_argument("--answer", help="column of the right answer (default: guessed)")
    upload.add_argument("--demonstration", help="column of a worked reply")
    upload.add_argument("--held-out-percent", type=int, help="kept for evaluation (default: 20)")
    upload.add_argument("--no-wait", action="store_true", help="do not wait for the import's end")
    datasets = commands.add_parser("datasets", help="list datasets with their newest version")
    datasets.add_argument("--search", default="", help="words of the name")
    datasets.add_argument("--project", default="", help="only of this project")
    datasets.add_argument("--json", action="store_true", help="one JSON document a line")
    commands.add_parser("presets", help="list presets")


def _add_run(one: argparse.ArgumentParser) -> None:
    """The run that a command is about."""
    one.add_argument("run", type=_number, help="number of the run: 12 or #12")


def _checkpoint(text: str) -> str:
    """`latest`, `best` or a step."""
    if text in {"latest", "best"} or (text.isascii() and text.isdecimal() and len(text) < 10):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is none; write latest, best or a step such as 40")


def _number(text: str) -> int:
    """`12` or `#12`."""
    digits = text.removeprefix("#")
    if not (digits.isascii() and digits.isdecimal()) or not 1 <= int(digits[:12]) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a run, such as 12 or #12")
    return int(digits)
