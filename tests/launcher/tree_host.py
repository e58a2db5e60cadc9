"""Runs a ProcessTree on its own, as `manage.py up` does: `python -m ... BASE JSON`.

Started by the tests as a process, since a tree adopts and ends everything below its process. The
JSON maps names of children to Python code. SIGTERM stops, a second one forces.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path

from webapp.launcher.child import ChildSpec
from webapp.launcher.console import Console
from webapp.launcher.instance_lock import instance_lock
from webapp.launcher.leftovers import take_down_leftovers
from webapp.launcher.process_tree import ProcessTree


def main() -> None:
    base, codes = Path(sys.argv[1]), json.loads(sys.argv[2])
    patience_s = float(sys.argv[3])
    stop = threading.Event()
    say = Console().say
    with instance_lock(base):
        tree = ProcessTree(base, say)

        def on_signal(*_: object) -> None:
            (tree.forced if stop.is_set() else stop).set()

        signal.signal(signal.SIGTERM, on_signal)
        take_down_leftovers(base, say)
        for name, code in codes.items():
            tree.start_child(ChildSpec(name, [sys.executable, "-c", code], base, patience_s))
        say("started")
        tree.watch(stop)
        tree.stop((("worker",), ("web",)))
        say("stopped")


if __name__ == "__main__":
    main()
