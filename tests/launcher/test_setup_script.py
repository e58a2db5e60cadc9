"""The set-up script complains well, on old Pythons too, and does nothing twice."""

from __future__ import annotations

import ast
import importlib.util
import os
import random
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pycosat
import pytest

from webapp.launcher import checks_machine
from webapp.launcher.paths import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "setup.py"
STANDIN = REPOSITORY / "scripts" / "standins" / "pycosat.py"


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"loaded_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup() -> ModuleType:
    return load(SCRIPT)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Plants shell scripts in a directory that is all of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def plant(name: str, code: str) -> Path:
        (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
        return tmp_path / name

    return plant


def test_it_parses_on_python_3_8() -> None:
    ast.parse(SCRIPT.read_text(), feature_version=(3, 8))


def test_only_old_pythons(setup: ModuleType, programs: Callable[[str, str], Path]) -> None:
    old = programs("python3", "echo 3 9")
    programs("python3.12", "exit 127")  # a shim without its version behind it
    with pytest.raises(setup.SetupError) as told:
        setup.choose_python()
    assert f"needs Python 3.11 or newer, found: {old} is 3.9" in str(told.value)
    assert "apt-get install python3.11" in str(told.value)


def test_the_newest_enough_python_is_taken(
    setup: ModuleType, programs: Callable[[str, str], Path]
) -> None:
    programs("python3", "echo 3 9")
    good = programs("python3.12", "echo 3 12")
    assert setup.choose_python() == str(good)


def test_the_whole_script_fails_with_a_sentence(
    tmp_path: Path, programs: Callable[[str, str], Path]
) -> None:
    copy = tmp_path / "a checkout"
    (copy / "scripts").mkdir(parents=True)
    for name in ("requirements.txt", "scripts/requirements-model.txt", "tests/requirements.txt"):
        (copy / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, copy / name)
    shutil.copy(SCRIPT, copy / "scripts" / "setup.py")
    programs("python3", "echo 3 9")
    ended = subprocess.run(
        [sys.executable, str(copy / "scripts" / "setup.py")], capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("Set-up failed: Temper needs Python 3.11 or newer")
    assert "Traceback" not in ended.stderr


def test_a_python_without_venv(
    setup: ModuleType,
    tmp_path: Path,
    programs: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs("python3.11", 'case "$1" in -c) echo 3 11;; *) echo no ensurepip; exit 1;; esac')
    monkeypatch.setattr(setup, "VENV", tmp_path / "venv")
    monkeypatch.setattr(setup, "VENV_PYTHON", tmp_path / "venv" / "bin" / "python")
    with pytest.raises(
        setup.SetupError, match=r"(?s)apt-get install python3\.11-venv.*no ensurepip"
    ):
        setup.make_venv()


def test_an_ordinary_user_without_a_browser_gets_one_sentence(
    setup: ModuleType, programs: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEMPER_CHROMIUM", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(setup.SetupError) as told:
        setup.provide_browser()
    assert str(told.value).count(". ") == 0
    assert "Chromium or Chrome on PATH" in str(told.value)


def test_root_on_debian_installs_a_browser(
    setup: ModuleType,
    tmp_path: Path,
    programs: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TEMPER_CHROMIUM", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    programs(
        "apt-get",
        f"echo $1 >> {tmp_path}/asked; : > {tmp_path}/chromium\n/bin/chmod 755 {tmp_path}/chromium",
    )
    setup.provide_browser()
    assert (tmp_path / "asked").read_text().split() == ["update", "install"]
    assert setup.find_browser() == str(tmp_path / "chromium")
    setup.provide_browser()
    assert len((tmp_path / "asked").read_text().split()) == 2


def test_a_full_disk_is_told_before_anything_is_installed(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "NEEDED_DISK_GB", 10.0**9)
    with pytest.raises(setup.SetupError, match="of free disk"):
        setup.require_disk()


def test_a_stamp_counts_only_for_the_same_requirements(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(setup, "VENV_PYTHON", Path(sys.executable))
    assert not setup.is_current(False)
    setup.write_stamp(False)
    assert setup.is_current(False)
    assert not setup.is_current(True)
    with monkeypatch.context() as moved:
        moved.setattr(setup, "VENV", tmp_path / "another place")
        assert not setup.is_current(False)
        assert setup.is_moved()
    monkeypatch.setattr(setup, "RUNTIME", ())
    assert not setup.is_current(False)


def test_setup_and_doctor_look_for_the_same_browsers(setup: ModuleType) -> None:
    assert setup.BROWSERS == checks_machine.BROWSERS


def test_the_standin_wheel_can_be_installed(setup: ModuleType, tmp_path: Path) -> None:
    setup.make_standin_wheel(tmp_path)
    (wheel,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--target", str(tmp_path / "out"), "--find-links", str(tmp_path), "pycosat==0.6.6"]
    subprocess.run(command, check=True)
    assert zipfile.is_zipfile(wheel)
    assert (tmp_path / "out" / "pycosat.py").read_text() == STANDIN.read_text()


def test_the_standin_finds_the_solutions_of_the_original() -> None:
    standin, chance = load(STANDIN), random.Random(7)
    for _ in range(200):
        variables = chance.randint(1, 6)
        clauses = [
            [chance.choice((-1, 1)) * chance.randint(1, variables) for _ in range(3)]
            for _ in range(chance.randint(1, 20))
        ]
        found = sorted(standin.itersolve(clauses), key=repr)
        used = {abs(literal) for clause in clauses for literal in clause}
        expected = {
            tuple(literal for literal in solution if abs(literal) in used)
            for solution in pycosat.itersolve(clauses)
        }
        assert {tuple(solution) for solution in found} == expected
        assert len(found) == len({tuple(solution) for solution in found})
