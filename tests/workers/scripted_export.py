"""A process that plays an export well or badly: the fake at the process border.

`python -m tests.workers.scripted_export SCENE EXPORT_DIR`, as `workers.exporter` starts it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from training_core.contract.exports import (
    ExportDir,
    ExportedFile,
    ExportProgress,
    ExportResult,
)


def ready(folder: ExportDir) -> int:
    folder.model.mkdir()
    (folder.model / "a").write_bytes(b"abc")
    folder.write_progress(ExportProgress(done=5, total=5, message="Hashing the files"))
    files = (ExportedFile(name="a", size=3, sha256="0" * 64),)
    folder.write_result(ExportResult(outcome="ready", parameters=7, files=files))
    return 0


def refuse(folder: ExportDir) -> int:
    folder.write_result(ExportResult(outcome="failed", message="No room.", advice="Make some."))
    return 1


def crash(folder: ExportDir) -> int:
    print("about to divide", flush=True)
    raise ZeroDivisionError(folder)


def die_by_signal(folder: ExportDir) -> int:
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def hang(folder: ExportDir) -> int:
    """Says how far it is, with a child that hides, and goes no further."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    (folder.root / "pids").write_text(f"{os.getpid()} {child.pid}")
    folder.write_progress(ExportProgress(done=2, total=5, message="Writing the weights"))
    time.sleep(600)
    return 0


SCENES = {each.__name__: each for each in (ready, refuse, crash, die_by_signal, hang)}

if __name__ == "__main__":
    sys.exit(SCENES[sys.argv[1]](ExportDir(Path(sys.argv[2]))))
