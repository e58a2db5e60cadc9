"""The window's divisor and gradient over two processes equal those of one, for every reduction."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors.torch import load_file

from tests.training_core.losses.rank import REDUCTIONS, gradient_of

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "tests.training_core.losses.rank"]
PATIENCE_S = 120


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def start(target: Path, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, str(target)], cwd=ROOT, env=os.environ | environment)


def test_two_processes_have_the_gradient_of_one(tmp_path: Path) -> None:
    target = tmp_path / "gradient"
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    ranks = [start(target, RANK=rank, LOCAL_RANK=rank, **group) for rank in ("0", "1")]
    alone = {name: gradient_of(Accelerator(cpu=True), name) for name in REDUCTIONS}
    assert [process.wait(PATIENCE_S) for process in ranks] == [0, 0]
    for reduction, expected in alone.items():
        first = load_file(f"{target}.{reduction}.0")
        second = load_file(f"{target}.{reduction}.1")
        norm = sum(float(gradient.square().sum()) for gradient in expected.values()) ** 0.5
        assert norm > 1e-3
        for name, gradient in expected.items():
            assert torch.equal(first[name], second[name])
            assert float((first[name] - gradient).norm()) <= 1e-9 * norm, (reduction, name)
