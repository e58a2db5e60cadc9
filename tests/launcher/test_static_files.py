"""Static files are collected when one has changed, and only then."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from webapp.launcher.static_files import collect_static


@pytest.fixture
def source(tmp_path: Path, settings: SimpleNamespace) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    (source / "page.css").write_text("a {}")
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STATIC_ROOT = tmp_path / "collected"
    return source


def test_a_change_is_collected_and_a_second_start_does_nothing(
    source: Path, tmp_path: Path
) -> None:
    assert collect_static(tmp_path)
    assert not collect_static(tmp_path)
    (source / "page.css").write_text("a { color: red }")
    assert collect_static(tmp_path)
    assert (tmp_path / "collected" / "page.css").read_text() == "a { color: red }"


def test_a_removed_file_goes_and_a_lost_output_comes_back(source: Path, tmp_path: Path) -> None:
    (source / "old.css").write_text("b {}")
    collect_static(tmp_path)
    (source / "old.css").unlink()
    assert collect_static(tmp_path)
    assert os.listdir(tmp_path / "collected") == ["page.css"]
    (tmp_path / "collected").rename(tmp_path / "lost")
    assert collect_static(tmp_path)
