"""The server's side of a download on the loopback, with everything that may go wrong on the way."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
import uuid
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from temper_client.models import Export, ExportedFile

CONTENT = {
    "README.md": b"# A model\n",
    "config.json": b"{}\n",
    "model.safetensors": bytes(range(256)) * 20_000,
    "tokenizer.json": b"",
}
FOLDER = "temper-run-1-step-2-float32"


def build_export(content: dict[str, bytes], **changes: object) -> Export:
    """A ready export with these files."""
    files = [
        ExportedFile(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in content.items()
    ]
    export = Export(
        id=uuid.UUID(int=7),
        run=1,
        project="main",
        step=2,
        dtype="float32",
        owner="ada",
        state="ready",
        message="",
        advice="",
        doing="",
        done=0,
        total=0,
        folder=FOLDER,
        parameters=1,
        size_bytes=sum(file.size for file in files),
        files=files,
        check=None,
        created_at=datetime(2026, 12, 1, tzinfo=UTC),
        finished_at=None,
        expires_at=None,
    )
    return export.model_copy(update=changes)


def build_archive(content: dict[str, bytes], folder: str = FOLDER) -> bytes:
    """Their tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in content.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class ArchiveServer:
    """Up while its `with` block runs."""

    def __init__(self, archive: bytes) -> None:
        self.archive = archive
        self.etag = '"one"'
        self.breaks: list[int] = []
        """After how many bytes each of the next answers breaks off."""
        self.busy = 0
        """How many of the next requests are answered 503."""
        self.asked: list[str] = []
        """The ranges that were asked for."""
        self.sent = 0
        """Bytes of bodies that were sent."""
        server = self

        class Handler(_Handler):
            archive_server = server

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ArchiveServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one range, as much of it as it is told to."""

    archive_server: ArchiveServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.archive_server
        self.close_connection = True
        if server.busy:
            server.busy -= 1
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        wanted = self.headers.get("Range", "")
        server.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        is_same = self.headers.get("If-Range", server.etag) == server.etag
        body = server.archive[start:] if is_same else server.archive
        self.send_response(206 if is_same else 200)
        self.send_header("ETag", server.etag)
        if is_same:
            end = len(server.archive)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{end}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        sent = body[: server.breaks.pop(0)] if server.breaks else body
        server.sent += len(sent)
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
