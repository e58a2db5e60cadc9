"""A program that takes webhooks: a real HTTP server that answers as it is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """Where it listens, what it answers, what it got."""

    url: str = ""
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def receive() -> Iterator[Receiver]:
    """Run it until the block ends."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(receiver.body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook?a=1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def drip() -> Iterator[str]:
    """Address of a server that sends one byte of an endless header every tenth of a second."""
    is_over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener, listener.accept()[0] as client, suppress(OSError):
            client.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not is_over.wait(0.1):
                client.sendall(b"x")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        is_over.set()
        thread.join(5)
