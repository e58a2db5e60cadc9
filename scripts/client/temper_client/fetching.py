"""From an export on the server to a model folder here: whole and checked, or not there at all.

Used by `Temper.download`. The archive is unpacked as it comes, into FOLDER.partial; a download that
was broken off goes on there, file by file and byte by byte. Each file's hash is compared, and only
then the folder gets its name.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from temper_client.connection import Connection
from temper_client.errors import TemperError
from temper_client.models import Export, ExportedFile
from temper_client.remote import RemoteFile
from temper_client.words import plain, size

BLOCK_BYTES = 1 << 20
Told = Callable[[int], None]
"""Hears how many bytes are here, those of an earlier try included."""


def hear_nothing(_: int) -> None:
    """Nobody wants to know how far it is."""


def fetch_folder(connection: Connection, export: Export, folder: Path, told: Told) -> None:
    """Write a ready export to a folder. Raises TemperError; what has come stays for another try."""
    check_target(folder)
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        partial.mkdir(parents=True, exist_ok=True)
        _check_room(partial, export)
        with RemoteFile(connection, f"/exports/{export.id}/download.tar") as remote:
            _unpack(io.BufferedReader(remote, BLOCK_BYTES), export, partial, told)
        if folder.is_dir():
            folder.rmdir()  # an empty one: the check has let it pass
        partial.rename(folder)
    except OSError as error:
        place = error.filename or folder
        raise TemperError(f"{place} cannot be written: {error.strerror or error}.") from error


def check_target(folder: Path) -> None:
    """Refuse to write over something. Raises TemperError."""
    is_taken = any(folder.iterdir()) if folder.is_dir() else folder.exists()
    if is_taken or not folder.name:
        raise TemperError(f"{folder} is there already; name another folder with -o.")


def _check_room(partial: Path, export: Export) -> None:
    """Say at once what would otherwise be found out in the middle. Raises TemperError."""
    missing = export.size_bytes - sum(path.stat().st_size for path in partial.iterdir())
    free = shutil.disk_usage(partial).free
    if free < missing:
        raise TemperError(f"It needs {size(missing)} more of disk, and {size(free)} are free.")


def _unpack(source: BinaryIO, export: Export, partial: Path, told: Told) -> None:
    """Write what is not here yet of each file of the archive. Raises TemperError."""
    wanted = {f"{export.folder}/{file.name}": file for file in export.files}
    for path in partial.iterdir():
        if f"{export.folder}/{path.name}" not in wanted:
            raise TemperError(f"{path} belongs to something else; move {partial} away.")
    done = 0
    try:
        with tarfile.open(fileobj=source, mode="r:") as tar:
            for member in tar:
                file = wanted.pop(member.name, None)
                if file is None or not member.isreg() or member.size != file.size:
                    raise TemperError(f"The archive holds {plain(member.name)} unexpectedly.")
                path = partial / _own_name(file)
                _fetch_file(source, member.offset_data, file, path, _after(done, told))
                done += file.size
    except tarfile.TarError as error:
        raise TemperError(f"What the server sends is no whole archive: {error}.") from error
    if wanted:
        raise TemperError(f"The archive lacks {plain(', '.join(sorted(wanted)))}.")


def _after(before: int, told: Told) -> Told:
    """Hears of one file what somebody else hears of all."""
    return lambda here: told(before + here)


def _own_name(file: ExportedFile) -> str:
    """A name that leads nowhere else, whatever a server says. Raises TemperError."""
    if file.name in {"", ".", ".."} or any(sign in file.name for sign in "/\\:\0"):
        raise TemperError(f"{plain(file.name)} is no name of a file.")
    return file.name


def _fetch_file(source: BinaryIO, start: int, file: ExportedFile, path: Path, told: Told) -> None:
    """One file: what is here of it is kept, and fetched anew once if the whole is another one."""
    was_here = path.exists()
    if _complete(source, start, file, path, told):
        return
    path.unlink()
    if was_here and _complete(source, start, file, path, told):
        return
    path.unlink(missing_ok=True)
    raise TemperError(f"{plain(file.name)} arrived damaged: its hash is not the server's.")


def _complete(source: BinaryIO, start: int, file: ExportedFile, path: Path, told: Told) -> bool:
    """Fetch what is missing at the end of a file; whether its hash is the right one."""
    digest = hashlib.sha256()
    here = 0
    with path.open("a+b") as target:
        target.seek(0)
        while block := target.read(BLOCK_BYTES):
            digest.update(block)
            here += len(block)
        told(here)
        if here < file.size:
            source.seek(start + here)
        while here < file.size:
            block = source.read(min(BLOCK_BYTES, file.size - here))
            if not block:
                raise TemperError(f"The archive ends inside {plain(file.name)}.")
            target.write(block)
            digest.update(block)
            here += len(block)
            told(here)
    return here == file.size and digest.hexdigest() == file.sha256
