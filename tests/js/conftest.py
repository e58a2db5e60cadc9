from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.js.chromium import call, shared_browser

ROOT = Path(__file__).resolve().parents[2]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-x'; connect-src 'self';"
    " img-src 'self' data: blob:; font-src 'self'"
)
"""What settings.py makes of the site's policy; test_policy_is_the_sites checks that."""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves static/ as /static/, and an empty page for everything else."""

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def do_GET(self) -> None:
        if self.path.startswith("/static/"):
            super().do_GET()
            return
        body = b"<!doctype html><html lang=en><head><title>t</title></head><body></body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with shared_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def static_address() -> Iterator[str]:
    handler = functools.partial(Handler, directory=str(ROOT))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="session")
def _page(chromium: Browser, static_address: str) -> Iterator[Page]:
    context = call(chromium.new_context, timezone_id="Asia/Kolkata", locale="en-GB")
    page = call(context.new_page)
    call(page.goto, static_address)
    yield page
    call(context.close)


@pytest.fixture
def js(_page: Page) -> Callable[..., Any]:
    """Run the body of an async function in the browser. `m` holds the named module's exports."""

    def run(module: str, body: str, argument: Any = None) -> Any:
        script = f"async (a) => {{ const m = await import('/static/js/{module}'); {body} }}"
        return call(_page.evaluate, script, argument)

    return run
