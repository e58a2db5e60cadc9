"""Make the built-in model ready: `python -m workers.prepare_model`.

Started by `manage.py up` beside the other processes, so that the page opens before the model is
there and shows how far it is. Quick when the model is ready.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from training_core.failures import BadModel
from training_core.models.prepare import prepare_builtin


def main() -> int:
    """Prepare, and say how long it took."""
    started = time.monotonic()
    data_dir = Path(
        os.environ.get("TEMPER_DATA_DIR") or Path(__file__).resolve().parents[1] / "var"
    )
    models_dir = Path(os.environ.get("TEMPER_MODELS_DIR") or data_dir / "models")
    try:
        target = prepare_builtin(models_dir)
    except BadModel as failure:
        print(failure.message, failure.advice, flush=True)
        return 1
    print(f"{target} is ready after {time.monotonic() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
