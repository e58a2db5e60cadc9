"""Who may import whom: the contracts of pyproject.toml, and what they cannot see."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.architecture.sources import PACKAGES, ROOT, python_files, relative

BLOCKED = ("torch", "transformers", "accelerate", "safetensors", "gguf")

IMPORT_WITHOUT_TORCH = f"""
import importlib, importlib.abc, os, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocker())
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
import django
django.setup()
for name in sys.argv[1:]:
    importlib.import_module(name)
print("imported", len(sys.argv) - 1)
"""

LIGHT = (
    "webapp",
    "training_core.contract",
    "training_core.rewards",
    "training_core.domains",
    "training_core.curriculum",
    "training_core.stats",
    "training_core.catalog",
    "training_core.failures",
    "workers",
)
TORCH_SIDE = (
    "workers.trainer_main",
    "workers.prepare_model",
    "workers.glass_main",
    "workers.export_main",
)


def module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_web_queue_and_light_core_need_no_torch() -> None:
    """The import-linter does not count implicit parent imports; a fresh interpreter does."""
    names = [
        name
        for path in python_files(*PACKAGES)
        if (name := module_name(relative(path))).startswith(LIGHT) and name not in TORCH_SIDE
    ]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_WITHOUT_TORCH, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == f"imported {len(names)}", done.stderr[-3000:]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_init_is_empty(package: str) -> None:
    full = [relative(p) for p in (ROOT / package).rglob("__init__.py") if p.read_text().strip()]
    assert full == []


def test_numpy_in_webapp_is_for_metrics_alone() -> None:
    found = []
    for path in python_files("webapp"):
        if relative(path).startswith("webapp/metrics/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found += [f"{relative(path)}: {n}" for n in names if n.split(".")[0] == "numpy"]
    assert found == []


def test_import_contracts_hold() -> None:
    done = subprocess.run(
        [ROOT / ".venv/bin/lint-imports" if (ROOT / ".venv").exists() else "lint-imports"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_a_planted_breach_turns_a_contract_red(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """The contracts can fail: a view that loads the trainer is caught."""
    copy = tmp_path / "tree"
    copy.mkdir()
    for package in PACKAGES:
        subprocess.run(["cp", "-r", ROOT / package, copy / package], check=True)
    subprocess.run(["cp", ROOT / "pyproject.toml", copy / "pyproject.toml"], check=True)
    view = copy / "webapp" / "runs" / "views" / "index.py"
    view.write_text(view.read_text() + "\nfrom training_core import train  # planted\n")
    lint = ROOT / ".venv/bin/lint-imports" if (ROOT / ".venv").exists() else "lint-imports"
    done = subprocess.run(
        [lint, "--no-cache"], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "training_core.train" in done.stdout
