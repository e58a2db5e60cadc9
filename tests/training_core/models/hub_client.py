"""Loads models by reference in a process of its own and prints how that ended, as JSON.

`python -m tests.training_core.models.hub_client REF...`: the client reads its endpoint, token and
cache from the environment as it is imported, so each environment needs a process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from training_core.failures import BadModel
from training_core.models.loading import load_model, make_policy


def main() -> None:
    found = {}
    for ref in sys.argv[1:]:
        told: list[tuple[int, int]] = []
        try:
            loaded = load_model(
                ref,
                models_dir=Path("/nonexistent"),
                fetched=lambda done, total, told=told: told.append((done, total)),  # type: ignore[misc]
            )
            facts = make_policy(ref, loaded, device=loaded.model.device).facts
            found[ref] = {"parameters": facts.parameters, "told": told}
        except BadModel as failure:
            found[ref] = {"message": failure.message, "advice": failure.advice}
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
