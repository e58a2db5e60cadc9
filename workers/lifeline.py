"""The pipe by which a process that computes learns that its supervisor is gone.

Used by `workers.trainer_main`, `workers.glass_main` and `workers.export_main`, in a thread.
"""

from __future__ import annotations

import os

ABANDONED = 75
"""Exit code when the supervisor is gone (EX_TEMPFAIL)."""


def exit_with_supervisor() -> None:
    """Wait for the end of stdin: the supervisor is gone, and so is the right to go on.

    Every file is append-only or written aside, so leaving at once loses nothing.
    """
    while os.read(0, 4096):
        pass
    os._exit(ABANDONED)
