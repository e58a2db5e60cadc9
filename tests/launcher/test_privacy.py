"""What people wrote is readable by the installation's user alone, unless told otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from webapp.launcher.errors import LauncherError
from webapp.launcher.privacy import PRIVATE, make_private


@pytest.fixture(autouse=True)
def mask_restored() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_new_files_and_old_folders_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEMPER_UMASK", raising=False)
    for name in PRIVATE:
        (tmp_path / name).mkdir(mode=0o755)
    make_private(tmp_path)
    (tmp_path / "runs" / "console.log").touch()
    assert {mode_of(tmp_path / name) for name in PRIVATE} == {0o700}
    assert mode_of(tmp_path / "runs" / "console.log") == 0o600


def test_a_group_may_share_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPER_UMASK", "007")
    (tmp_path / "runs").mkdir(mode=0o700)
    make_private(tmp_path)
    assert mode_of(tmp_path / "runs") == 0o770


@pytest.mark.parametrize("mask", ["77x", "-1", "1777", "277", "8"])
def test_a_mask_that_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: str
) -> None:
    monkeypatch.setenv("TEMPER_UMASK", mask)
    with pytest.raises(LauncherError, match="TEMPER_UMASK"):
        make_private(tmp_path)
