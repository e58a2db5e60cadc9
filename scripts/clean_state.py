"""Delete all state of this installation, after asking. Called by `make clean-state`.

Refuses while `manage.py up` runs, and without a terminal to ask on.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from webapp.launcher import paths
from webapp.launcher.console import readable_size, size_of
from webapp.launcher.errors import LauncherError
from webapp.launcher.instance_lock import instance_lock
from webapp.launcher.leftovers import take_down_leftovers
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.valkey import EmbeddedValkey


def clean(base: Path) -> None:
    """End what still runs there, then delete the directory and its sockets."""
    postgres = EmbeddedPostgres(base)
    with instance_lock(base):
        take_down_leftovers(base, print)
        postgres.stop()
        EmbeddedValkey(base).stop()
        shutil.rmtree(postgres.home, ignore_errors=True)
        shutil.rmtree(paths.socket_dir(base), ignore_errors=True)
        shutil.rmtree(base)


def main() -> int:
    """Ask, then clean."""
    base = paths.data_dir()
    if not base.exists():
        print(f"There is no state in {base}.")
        return 0
    print(
        f"This deletes {base} for good: {readable_size(size_of(base))} of database, runs, models."
    )
    if not sys.stdin.isatty():
        print("Nothing deleted: there is no terminal to ask on.", file=sys.stderr)
        return 1
    if input("Type the word delete to go on: ").strip() != "delete":
        print("Nothing deleted.")
        return 1
    try:
        clean(base)
    except LauncherError as error:
        print(f"Nothing deleted: {error}", file=sys.stderr)
        return 1
    print("Deleted.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
