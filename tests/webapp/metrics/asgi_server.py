"""The real ASGI application under uvicorn in a thread, for tests that stream."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application


@dataclass
class RunningServer:
    """Where it listens, and its event loop."""

    port: int
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def task_names(self) -> list[str]:
        """Names of the tasks of its loop."""

        async def names() -> list[str]:
            return [task.get_name() for task in asyncio.all_tasks()]

        return asyncio.run_coroutine_threadsafe(names(), self.loop).result(10)


@contextmanager
def serve() -> Iterator[RunningServer]:
    """Run the server until the block ends."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        ASGIStaticFilesHandler(get_asgi_application()),
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        await server.serve(sockets=[listener])

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield RunningServer(listener.getsockname()[1], loops[0])
    finally:
        server.should_exit = True
        thread.join(15)
        listener.close()
