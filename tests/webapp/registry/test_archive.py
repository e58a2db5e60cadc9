"""The archive that is never written: what tar makes of it, and every range of it."""

from __future__ import annotations

import asyncio
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from training_core.contract.exports import ExportedFile
from webapp.registry import archive
from webapp.registry.archive import Archive, plan_archive, read_range
from webapp.registry.ranges import ByteRange, Unsatisfiable, read_range_header, wanted_range

CONTENTS = {"a.txt": b"", "b.bin": b"x" * 511, "c.bin": b"y" * 512, "d.bin": bytes(range(256)) * 9}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def plan(folder: Path) -> Archive:
    return plan_archive(folder, "model", files(), 1_790_000_000)


def files() -> list[ExportedFile]:
    return [
        ExportedFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())
        for name, content in CONTENTS.items()
    ]


def read(plan: Archive, start: int, stop: int) -> bytes:
    async def collect() -> bytes:
        return b"".join([block async for block in read_range(plan, start, stop)])

    return asyncio.run(collect())


def test_tar_reads_it(plan: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "CHUNK_BYTES", 100)
    whole = read(plan, 0, plan.size)
    assert len(whole) == plan.size
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        found = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        assert {name: file.read() for name, file in found.items() if file} == {
            f"model/{name}": content for name, content in CONTENTS.items()
        }
        assert {member.mode for member in tar.getmembers()} == {0o644}


def test_every_range_is_that_part_of_the_whole(plan: Archive) -> None:
    whole = read(plan, 0, plan.size)
    edges = sorted({0, 1, *(piece.start + d for piece in plan.pieces for d in (0, 1)), plan.size})
    for start in edges:
        for stop in edges:
            if start < stop:
                assert read(plan, start, stop) == whole[start:stop]


def test_the_same_folder_has_the_same_name_and_another_has_not(folder: Path, plan: Archive) -> None:
    assert plan_archive(folder, "model", files(), 1_790_000_000) == plan
    others = [
        plan_archive(folder, "other", files(), 1_790_000_000),
        plan_archive(folder, "model", files(), 1_790_000_001),
        plan_archive(folder, "model", files()[1:], 1_790_000_000),
        plan_archive(
            folder,
            "model",
            [file.model_copy(update={"sha256": "0" * 64}) for file in files()],
            1_790_000_000,
        ),
    ]
    assert len({plan.etag, *(other.etag for other in others)}) == 5


def test_a_file_beyond_what_a_plain_header_can_say(tmp_path: Path) -> None:
    """Ten gigabytes, of which only the header is looked at."""
    big = ExportedFile(name="w", size=10 << 30, sha256="0" * 64)
    plan = plan_archive(tmp_path, "m", [big], 0)
    header = plan.pieces[0]
    with tarfile.open(fileobj=io.BytesIO(header.content)) as tar:
        assert tar.next().size == 10 << 30  # type: ignore[union-attr]
    assert plan.size == header.size + (10 << 30) + 1024


def test_an_export_that_is_deleted_meanwhile_still_arrives_whole(
    folder: Path, plan: Archive
) -> None:
    expected = read(plan, 0, plan.size)

    async def delete_after_the_first_block() -> bytes:
        blocks = read_range(plan, 0, plan.size)
        found = await anext(blocks)
        for name in CONTENTS:
            (folder / name).unlink()
        return found + b"".join([block async for block in blocks])

    assert asyncio.run(delete_after_the_first_block()) == expected


def test_a_folder_that_is_gone_fails_before_the_first_byte(folder: Path, plan: Archive) -> None:
    (folder / "d.bin").unlink()
    with pytest.raises(OSError, match=r"d\.bin"):
        read(plan, 0, plan.size)


def test_a_file_that_has_become_shorter_is_not_filled_up(folder: Path, plan: Archive) -> None:
    (folder / "d.bin").write_bytes(b"short")
    with pytest.raises(OSError, match="shorter"):
        read(plan, 0, plan.size)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=0-", (0, 100)),
        ("bytes=10-19", (10, 20)),
        ("BYTES = 10 - 1000", (10, 100)),
        ("bytes=99-", (99, 100)),
        ("bytes=-1", (99, 100)),
        ("bytes=-1000", (0, 100)),
        ("", None),
        ("bytes=-", None),
        ("bytes=20-10", None),
        ("bytes=0-1,5-6", None),
        ("rows=0-1", None),
        ("bytes=a-b", None),
        ("bytes=٣-٤", None),
        ("bytes=0-" + "9" * 30, None),
    ],
)
def test_the_range_header(header: str, expected: tuple[int, int] | None) -> None:
    assert read_range_header(header, 100) == (ByteRange(*expected) if expected else None)


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=1000-2000", "bytes=-0"])
def test_a_range_beyond_the_end(header: str) -> None:
    with pytest.raises(Unsatisfiable):
        read_range_header(header, 100)


def test_a_part_of_another_content_is_answered_with_the_whole() -> None:
    assert wanted_range("bytes=5-", '"a"', 100, '"a"') == ByteRange(5, 100)
    assert wanted_range("bytes=5-", '"b"', 100, '"a"') is None
    assert wanted_range("bytes=5-", "Wed, 02 Dec 2026 10:00:00 GMT", 100, '"a"') is None
