"""A model hub on the loopback: the fake at the network's border, spoken to by the real client.

It answers what `huggingface_hub` asks: facts of a repository, its files, and each file, with the
hub's own codes of refusal.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MEMBER, STRANGER = "hf_member", "hf_stranger"
"""Tokens: of somebody who was granted access to gated models, and of somebody who was not."""


@dataclass
class Repository:
    """One model of the hub."""

    files: dict[str, bytes]
    gated: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    """What the list of files claims, where it is not the truth."""

    @classmethod
    def of(cls, folder: Path, **changes: Any) -> Repository:
        """What somebody has saved, uploaded."""
        return cls({path.name: path.read_bytes() for path in folder.iterdir()}, **changes)

    def size_of(self, name: str) -> int:
        return self.sizes.get(name, len(self.files[name]))


class Hub:
    """The server, up while its `with` block runs."""

    def __init__(self, repositories: dict[str, Repository]) -> None:
        self.repositories = repositories
        self.fetched: list[str] = []
        """`org/name/file` of every file that was sent."""
        self.status = 0
        """A status with which everything is answered; 0 for none."""
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Hub:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server_hub: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        if parts == [""]:
            return self._send(200, b"hub")
        if self.server_hub.status:
            return self._send(self.server_hub.status, b"")
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in {"", MEMBER, STRANGER}:
            words = "Invalid credentials in Authorization header"
            return self._send(401, b"", {"X-Error-Message": words})
        if parts[:2] == ["api", "models"]:
            return self._answer_about("/".join(parts[2:4]), parts[4:])
        if len(parts) == 5 and parts[2] == "resolve":
            return self._send_file("/".join(parts[:2]), parts[4], token)
        return self._send(404, b"")

    def _answer_about(self, name: str, more: list[str]) -> None:
        """Facts of a repository, or the list of its files."""
        repository = self.server_hub.repositories.get(name)
        if repository is None:
            return self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        if more[:1] == ["tree"]:
            tree = [
                {"type": "file", "path": file, "size": repository.size_of(file), "oid": _oid(data)}
                for file, data in repository.files.items()
            ]
            return self._send(200, json.dumps(tree).encode(), kind="application/json")
        siblings = [
            {"rfilename": file, "size": repository.size_of(file)} for file in repository.files
        ]
        facts = {
            "id": name,
            "modelId": name,
            "sha": COMMIT,
            "private": False,
            "gated": "manual" if repository.gated else False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "siblings": siblings,
        }
        return self._send(200, json.dumps(facts).encode(), kind="application/json")

    def _send_file(self, name: str, file: str, token: str) -> None:
        """One file, for who may have it."""
        repository = self.server_hub.repositories.get(name)
        if repository is None:
            return self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        if repository.gated and token != MEMBER:
            return self._send(403 if token else 401, b"", {"X-Error-Code": "GatedRepo"})
        if file not in repository.files:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        if self.command == "GET":
            self.server_hub.fetched.append(f"{name}/{file}")
        content = repository.files[file]
        return self._send(200, content, {"X-Repo-Commit": COMMIT, "ETag": f'"{_oid(content)}"'})

    def _send(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        kind: str = "application/octet-stream",
    ) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": kind}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Silent."""


def _oid(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()
