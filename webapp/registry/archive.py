"""An exported folder as one tar file that is never written: any range of it can be read.

Called by the download view. Sizes of all files are known, tar headers follow from them, and nothing
is compressed (weights do not compress), so byte N of the archive is always the same byte: a broken
download goes on where it broke. What would surprise: all files are opened before the first byte is
sent, so an export that is deleted meanwhile still arrives whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tarfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from training_core.contract.exports import ExportedFile

BLOCK = tarfile.BLOCKSIZE
CHUNK_BYTES = 1 << 20


class Piece(NamedTuple):
    """A stretch of the archive: bytes of our own, or a file's content."""

    start: int
    """Where it begins in the archive."""
    size: int
    content: bytes = b""
    path: Path | None = None


class Archive(NamedTuple):
    """The plan of one archive."""

    pieces: tuple[Piece, ...]
    size: int
    """Bytes of the whole."""
    etag: str
    """Names this content, quoted as the header wants it."""


def plan_archive(folder: Path, prefix: str, files: Sequence[ExportedFile], mtime: int) -> Archive:
    """Lay out a tar of the files under `prefix/`; the same input gives the same bytes."""
    pieces: list[Piece] = []
    end = 0
    digest = hashlib.sha256()
    for file in files:
        header = _header(f"{prefix}/{file.name}", file.size, mtime)
        digest.update(header + file.sha256.encode())
        for size, content, path in (
            (len(header), header, None),
            (file.size, b"", folder / file.name),
            (-file.size % BLOCK, bytes(-file.size % BLOCK), None),
        ):
            if size:
                pieces.append(Piece(end, size, content, path))
                end += size
    pieces.append(Piece(end, 2 * BLOCK, bytes(2 * BLOCK)))
    return Archive(tuple(pieces), end + 2 * BLOCK, f'"{digest.hexdigest()[:40]}"')


def _header(name: str, size: int, mtime: int) -> bytes:
    """What tar writes before a file; longer than a block for very large ones."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, mtime, 0o644
    return info.tobuf(tarfile.PAX_FORMAT)


async def read_range(archive: Archive, start: int, stop: int) -> AsyncIterator[bytes]:
    """Bytes from `start` up to, not including, `stop`. Raises OSError before the first of them
    when a file is gone, and when one has become shorter."""
    with ExitStack() as stack:
        handles = await asyncio.to_thread(_open_all, archive, start, stop, stack)
        for piece, first, last in _parts(archive, start, stop):
            if piece.path is None:
                yield piece.content[first:last]
                continue
            for offset in range(first, last, CHUNK_BYTES):
                length = min(CHUNK_BYTES, last - offset)
                yield await asyncio.to_thread(_read, handles[piece.path], length, offset)


def _open_all(archive: Archive, start: int, stop: int, stack: ExitStack) -> dict[Path, int]:
    """A descriptor for each file of a range."""
    handles: dict[Path, int] = {}
    for piece, _, _ in _parts(archive, start, stop):
        if piece.path is not None:
            handles[piece.path] = handle = os.open(piece.path, os.O_RDONLY)
            stack.callback(os.close, handle)
    return handles


def _parts(archive: Archive, start: int, stop: int) -> Iterator[tuple[Piece, int, int]]:
    """Pieces that a range touches, each with its own first byte and its own end."""
    for piece in archive.pieces:
        first, last = max(start - piece.start, 0), min(stop - piece.start, piece.size)
        if first < last:
            yield piece, first, last


def _read(handle: int, length: int, offset: int) -> bytes:
    """Exactly that many bytes: fewer would shift everything after them."""
    found = b""
    while len(found) < length:
        block = os.pread(handle, length - len(found), offset + len(found))
        if not block:
            raise OSError("a file of the export has become shorter")
        found = found + block if found else block
    return found
