"""The web server's process: `python -m webapp.launcher.serve FD`, on a socket that `up` opened.

Started by `up.py`. What would surprise: `up` keeps the socket, so that two installations that start
in the same second never choose the same port, and browsers wait instead of being refused while
this process is started again. uvicorn's own `--fd` would take the socket for a UNIX one.
"""

from __future__ import annotations

import socket
import sys
import tempfile

import uvicorn

from webapp.settings import TRUSTED_PROXIES, UPLOADS_DIR

OPEN_STREAMS_PATIENCE_S = 3


def main(descriptor: int) -> None:
    """Serve until told to stop; event streams that are still open are cut soon after."""
    tempfile.tempdir = str(UPLOADS_DIR)  # where Django keeps a body that is coming in
    config = uvicorn.Config(
        "webapp.asgi:application",
        lifespan="off",
        access_log=False,
        log_config=None,  # Django's, which hides secrets and can write JSON
        proxy_headers=bool(TRUSTED_PROXIES),
        forwarded_allow_ips=TRUSTED_PROXIES,
        timeout_graceful_shutdown=OPEN_STREAMS_PATIENCE_S,
    )
    with socket.socket(fileno=descriptor) as listening:
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(int(sys.argv[1]))
