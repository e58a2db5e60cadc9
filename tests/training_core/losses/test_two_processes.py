"""The window's divisor and gradient over two processes equal those of one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors.torch import load_file

from tests.training_core.losses.rank import window_gradient

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
    alone = window_gradient(Accelerator(cpu=True))
    assert [process.wait(PATIENCE_S) for process in ranks] == [0, 0]
    first, second = load_file(f"{target}.0"), load_file(f"{target}.1")
    for name, gradient in alone.items():
        assert torch.equal(first[name], second[name])
        assert torch.allclose(first[name], gradient, atol=1e-6, rtol=1e-5), name
    assert any(float(gradient.abs().max()) > 1e-3 for gradient in alone.values())
