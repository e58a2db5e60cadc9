"""Where models of the hub are kept on disk, without asking the hub.

Read by the trainer, which fetches them (`models.hub`), and by pages that say what is here. The
layout is that of `huggingface_hub`, so what other programs have fetched is found as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

MAIN_REVISION = "main"


def hub_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """HF_HUB_CACHE, else `hub` below HF_HOME, else where every program of this user keeps them."""
    if cache := environment.get("HF_HUB_CACHE"):
        return Path(os.path.expandvars(cache)).expanduser()
    if home := environment.get("HF_HOME"):
        return Path(os.path.expandvars(home)).expanduser() / "hub"
    caches = environment.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expandvars(caches)).expanduser() / "huggingface" / "hub"


def find_snapshot(cache: Path, ref: str) -> Path | None:
    """The folder of a model that was fetched, as it was then; None when there is none."""
    if ref.startswith(".") or ref.count("/") > 1:
        return None
    home = cache / f"models--{ref.replace('/', '--')}"
    try:
        commit = (home / "refs" / MAIN_REVISION).read_text().strip()
        snapshot = home / "snapshots" / commit
        return snapshot if commit and (snapshot / "config.json").is_file() else None
    except (OSError, ValueError):
        return None
