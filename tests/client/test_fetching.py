"""An export on its way to a folder: broken connections, earlier tries, hostile archives."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from temper_client.config import Config
from temper_client.connection import Connection
from temper_client.errors import TemperError, UnreachableError
from temper_client.fetching import fetch_folder, hear_nothing
from temper_client.models import Export

from tests.client.archive_server import CONTENT, ArchiveServer, build_archive, build_export

EXPORT = build_export(CONTENT)


@pytest.fixture
def server() -> Iterator[ArchiveServer]:
    with ArchiveServer(build_archive(CONTENT)) as server:
        yield server


def fetch(
    server: ArchiveServer, folder: Path, export: Export = EXPORT, *, patience_s: float = 20
) -> list[int]:
    """Fetch it without real waiting; what was told."""
    told: list[int] = []
    config = Config(server.url, "temper_x")
    connection = Connection(config, patience_s=patience_s, sleep=lambda _: time.sleep(0))
    try:
        fetch_folder(connection, export, folder, told.append)
    finally:
        connection.close()
    return told


def is_whole(folder: Path) -> bool:
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    return found == CONTENT and not folder.with_name(f"{folder.name}.partial").exists()


def test_one_request_brings_the_folder(server: ArchiveServer, tmp_path: Path) -> None:
    told = fetch(server, tmp_path / "model")
    assert is_whole(tmp_path / "model")
    assert server.asked == ["bytes=0-"]
    assert told == sorted(told)
    assert told[-1] == EXPORT.size_bytes


def test_a_connection_that_breaks_goes_on_where_it_broke(
    server: ArchiveServer, tmp_path: Path
) -> None:
    server.breaks = [0, 100, 1_000_000, 3]
    server.busy = 2
    fetch(server, tmp_path / "model")
    assert is_whole(tmp_path / "model")
    assert len(server.asked) == 5
    assert server.sent == len(server.archive)  # no byte twice


def test_a_server_that_gives_nothing_ends_the_patience(
    server: ArchiveServer, tmp_path: Path
) -> None:
    server.breaks = [0] * 100
    with pytest.raises(UnreachableError, match="does not answer"):
        fetch(server, tmp_path / "model", patience_s=3)
    assert not (tmp_path / "model").exists()


def test_another_try_goes_on_from_what_is_here(server: ArchiveServer, tmp_path: Path) -> None:
    server.breaks = [2_000_000, 0, 0]
    with pytest.raises(UnreachableError):
        fetch(server, tmp_path / "model", patience_s=0)
    assert not (tmp_path / "model").exists()
    partial = tmp_path / "model.partial"
    here = sum(path.stat().st_size for path in partial.iterdir())
    assert here > 900_000
    server.breaks, server.sent = [], 0
    fetch(server, tmp_path / "model")
    assert is_whole(tmp_path / "model")
    assert server.asked[-1] != "bytes=0-"  # the part that is here was skipped


def test_what_is_here_of_another_export_is_fetched_anew(
    server: ArchiveServer, tmp_path: Path
) -> None:
    partial = tmp_path / "model.partial"
    partial.mkdir()
    (partial / "README.md").write_bytes(b"# Another\nand longer")
    (partial / "model.safetensors").write_bytes(b"x" * 1000)
    fetch(server, tmp_path / "model")
    assert is_whole(tmp_path / "model")


def test_a_damaged_file_is_not_given_out(tmp_path: Path) -> None:
    content = {**CONTENT, "model.safetensors": b"\0" * len(CONTENT["model.safetensors"])}
    with (
        ArchiveServer(build_archive(content)) as server,
        pytest.raises(TemperError, match="arrived damaged"),
    ):
        fetch(server, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    assert not (tmp_path / "model.partial" / "model.safetensors").exists()


def test_an_archive_that_became_another_one_is_not_mixed(
    server: ArchiveServer, tmp_path: Path
) -> None:
    server.breaks = [1_000_000]
    config = Config(server.url, "temper_x")

    def change(_: float) -> None:
        server.etag = '"two"'

    connection = Connection(config, sleep=change)
    with pytest.raises(TemperError, match="another one now"):
        fetch_folder(connection, EXPORT, tmp_path / "model", hear_nothing)
    connection.close()


@pytest.mark.parametrize("name", ["../evil", "a/b", "..", "c:x", "a\\b"])
def test_a_name_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    content = {name: b"evil"}
    with (
        ArchiveServer(build_archive(content)) as server,
        pytest.raises(TemperError, match="is no name of a file"),
    ):
        fetch(server, tmp_path / "home" / "model", build_export(content))
    assert [path.name for path in tmp_path.rglob("*")] == ["home", "model.partial"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({**CONTENT, "more": b"x"}, "holds .*more unexpectedly"),
        ({"README.md": CONTENT["README.md"]}, "lacks .*config.json"),
        ({**CONTENT, "README.md": b"longer than it should be"}, "holds .*README.md unexpectedly"),
    ],
)
def test_an_archive_of_something_else_is_refused(
    content: dict[str, bytes], words: str, tmp_path: Path
) -> None:
    with ArchiveServer(build_archive(content)) as server, pytest.raises(TemperError, match=words):
        fetch(server, tmp_path / "model")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with ArchiveServer(b"<html>" * 500) as server, pytest.raises(TemperError, match="no whole"):
        fetch(server, tmp_path / "model")


def test_nothing_is_written_over(server: ArchiveServer, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "notes").write_text("mine")
    with pytest.raises(TemperError, match="is there already"):
        fetch(server, tmp_path / "model")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TemperError, match="is there already"):
        fetch(server, tmp_path / "file")
    (tmp_path / "empty").mkdir()
    fetch(server, tmp_path / "empty")
    assert is_whole(tmp_path / "empty")
    (tmp_path / "other.partial").mkdir()
    (tmp_path / "other.partial" / "diary").write_text("mine")
    with pytest.raises(TemperError, match="belongs to something else"):
        fetch(server, tmp_path / "other")
    assert (tmp_path / "other.partial" / "diary").read_text() == "mine"


def test_a_full_disk_is_told_before(
    server: ArchiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 100})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(TemperError, match=r"needs 5\.1 MB more of disk"):
        fetch(server, tmp_path / "model")
    assert not server.asked


def test_a_folder_that_cannot_be_made_names_itself(server: ArchiveServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TemperError, match="cannot be written"):
        fetch(server, tmp_path / "file" / "model")
