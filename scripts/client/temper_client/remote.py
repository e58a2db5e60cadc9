"""A file of the server that is read like one on disk: from any place, over broken connections.

Used by `fetching`. What would surprise: nothing is asked for until something is read, so a seek
costs one request at most, and reading in order costs one for the whole file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import httpx2

from temper_client.connection import Connection
from temper_client.errors import TemperError

_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)", re.ASCII)
CHANGED = "The archive on the server is another one now; run the command again."


class RemoteFile(io.RawIOBase):
    """Bytes below one address, whose server takes ranges and names the content by an ETag."""

    def __init__(self, connection: Connection, path: str) -> None:
        super().__init__()
        self._connection, self._path = connection, path
        self._position = 0
        self._size: int | None = None
        self._etag = ""
        self._answer: httpx2.Response | None = None
        self._blocks: Iterator[bytes] = iter(())
        self._rest = memoryview(b"")
        """What has come and was not read yet: it begins at `_position` while there is an answer."""

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go there; the connection is kept only where nothing changes."""
        if whence == io.SEEK_CUR:
            offset += self._position
        elif whence != io.SEEK_SET:
            raise io.UnsupportedOperation("the end is not known before something is read")
        if offset != self._position:
            self._let_go()
            self._position = offset
        return offset

    def readinto(self, buffer: Any) -> int:
        """Some of the next bytes; 0 at the end. Raises TemperError."""
        if self._size is not None and self._position >= self._size:
            return 0
        if not self._rest:
            self._rest = memoryview(self._connection.patiently(self._next_block))
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(self._rest))
        view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._position += count
        return count

    def close(self) -> None:
        """Let the connection go."""
        self._let_go()
        super().close()

    def _next_block(self) -> bytes:
        """What comes next. Raises UnreachableError, after which the next try asks anew."""
        try:
            if self._answer is None:
                self._ask()
            while not (block := next(self._blocks, b"")):
                if self._size is None or self._position < self._size:
                    raise httpx2.ReadError("it ended too early")
            return block
        except httpx2.HTTPError as error:
            self._let_go()
            raise self._connection.silence(error) from error

    def _ask(self) -> None:
        """Have the bytes come from the position on. Raises TemperError."""
        headers = {"Range": f"bytes={self._position}-", "Accept-Encoding": "identity"}
        if self._etag:
            headers["If-Range"] = self._etag
        answer = self._answer = self._connection.open_body(self._path, headers)
        place = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status_code != 206 or place is None or int(place[1]) != self._position:
            self._let_go()
            raise TemperError(CHANGED if self._etag else "The server gives no parts of an archive.")
        self._size = int(place[2])
        self._etag = answer.headers.get("ETag", "")
        self._blocks = answer.iter_raw()

    def _let_go(self) -> None:
        """Forget what comes."""
        if self._answer is not None:
            self._answer.close()
        self._answer, self._blocks, self._rest = None, iter(()), memoryview(b"")
