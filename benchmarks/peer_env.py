"""Virtualenvs of peers: what Temper is compared with is never installed beside it.

    from peer_env import run_peer
    run_peer("trl", "trl_loss.py", "cases.safetensors", "found.safetensors")

`benchmarks/peers/NAME.txt` pins a peer; its virtualenv lies in `var/peers/NAME` and is made once.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / "peers"


def peer_python(name: str) -> Path:
    """The interpreter of a peer's virtualenv, which is made when it is not there as pinned."""
    folder, wanted = ROOT / "var" / "peers" / name, PEERS / f"{name}.txt"
    mark = folder / "made-of"
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    python = folder / "bin" / "python"
    if mark.is_file() and mark.read_text() == digest:
        return python
    print(f"Making the virtualenv of {name} in {folder.relative_to(ROOT)} ...", flush=True)
    venv.create(folder, clear=True, with_pip=True)
    command = [python, "-m", "pip", "install", "--quiet", "--requirement", wanted]
    done = subprocess.run([*map(str, command)], check=False)
    if done.returncode:
        raise SystemExit(f"{name} could not be installed: see what pip says above.")
    mark.write_text(digest)
    return python


def run_peer(name: str, script: str, *arguments: str, timeout_s: float = 3600) -> None:
    """Run a script of `benchmarks/peers` with a peer's interpreter; ends the benchmark if it
    fails."""
    command = [str(peer_python(name)), str(PEERS / script), *arguments]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=ROOT, env={**environment, "OMP_NUM_THREADS": "2"}, timeout=timeout_s
    )
    if done.returncode:
        raise SystemExit(f"{script} of {name} ended with {done.returncode}.")
    sys.stdout.flush()
