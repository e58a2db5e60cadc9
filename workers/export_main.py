"""The export process: `python -m workers.export_main EXPORT_DIR`.

Started by `workers.exporter`, which holds the other end of its stdin, reads its progress from the
directory and kills it when somebody cancels. Ends with code 0 when the folder is there and 1 when
not; either way `result.json` says why.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import threading
import traceback
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from training_core.contract.exports import ExportDir, ExportResult
from training_core.exports.folder import export_checkpoint
from training_core.failures import TrainingFailure
from training_core.models.device import usable_threads
from training_core.models.processor import use_repeatable_products
from workers.lifeline import exit_with_supervisor

BEHIND_TRAINERS = 10
"""An export waits for processor time, a run does not."""
RETRY = "The export can be made again; the console has the details."


def main(argv: list[str] | None = None) -> int:
    """Make one export."""
    parser = argparse.ArgumentParser(prog="export_main", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = ExportDir(parser.parse_args(argv).folder)
    use_repeatable_products()  # the same weights, loaded twice, are compared bit by bit
    os.nice(BEHIND_TRAINERS)
    disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.set_num_threads(usable_threads())
    threading.Thread(target=exit_with_supervisor, daemon=True).start()
    result = make_export(folder)
    folder.write_result(result)
    print(result.outcome, result.message, result.advice, flush=True)
    return 0 if result.outcome == "ready" else 1


def make_export(folder: ExportDir) -> ExportResult:
    """Make it, and say how it ended; nothing is raised."""
    try:
        return export_checkpoint(folder, folder.write_progress)
    except TrainingFailure as failure:
        return ExportResult(outcome="failed", message=failure.message, advice=failure.advice)
    except OSError as error:
        traceback.print_exc(file=sys.stdout)
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        return ExportResult(
            outcome="failed",
            message="The disk is full." if is_full else f"The folder cannot be written: {error}.",
            advice="Delete exports or old runs, then make it again." if is_full else RETRY,
        )
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        return ExportResult(
            outcome="failed",
            message=f"The export failed for a reason of ours ({type(error).__name__}: {error}).",
            advice=RETRY,
        )


if __name__ == "__main__":
    sys.exit(main())
