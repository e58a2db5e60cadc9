"""One try of one message: signed, to a judged address, without redirects, within limits.

Called by `services`. Signatures are those of standard-webhooks 1.0: HMAC-SHA256 over id, timestamp
and body, so that a receiver can refuse forgeries and messages that are sent again much later.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from webapp.webhooks.addresses import Target, TargetRefused, parse_target, resolve
from webapp.webhooks.models import SECRET_MARK, Delivery

SOCKET_TIMEOUT_S = 5.0
MOST_SECONDS = 10.0
TOO_SLOW = f"It did not answer within {MOST_SECONDS:.0f} s."
MOST_BYTES = 64 * 1024


class Outcome(NamedTuple):
    """What came of a try."""

    status: int | None
    """HTTP status; None when no answer came."""
    error: str
    """Why it failed; empty when it did not."""
    milliseconds: int


def send(delivery: Delivery) -> Outcome:
    """Post the message; never raises for anything that the other side does."""
    start = time.monotonic()
    end = start + MOST_SECONDS
    status: int | None = None
    try:
        target = parse_target(delivery.endpoint.url)
        status = _post(target, resolve(target), delivery, end)
        error = "" if 200 <= status < 300 else f"It answered {status}{_hint(status)}."
    except TargetRefused as refusal:
        error = str(refusal)
    except TimeoutError:
        error = TOO_SLOW
    except ssl.SSLCertVerificationError as fault:
        error = f"Its certificate cannot be trusted: {fault.verify_message}."
    except (OSError, ValueError, http.client.HTTPException) as fault:
        is_late = time.monotonic() >= end
        error = TOO_SLOW if is_late else f"The connection failed: {type(fault).__name__} {fault}"
    return Outcome(status, error[:500], round(1000 * (time.monotonic() - start)))


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The header webhook-signature: `v1,` and the MAC in base64."""
    key = base64.b64decode(secret.removeprefix(SECRET_MARK))
    content = b".".join([message_id.encode(), str(timestamp).encode(), body])
    return f"v1,{base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()}"


def _post(target: Target, address: str, delivery: Delivery, deadline: float) -> int:
    """The status of the answer. Raises OSError or HTTPException."""
    body = json.dumps(delivery.payload, ensure_ascii=False, allow_nan=False).encode()
    now = int(time.time())
    with _connected(target, address, deadline) as connection:
        connection.request(
            "POST",
            target.path,
            body,
            {
                "Host": target.host_header,
                "Content-Type": "application/json",
                "User-Agent": "Temper-Webhooks",
                "webhook-id": str(delivery.pk),
                "webhook-timestamp": str(now),
                "webhook-signature": sign(delivery.endpoint.secret, str(delivery.pk), now, body),
            },
        )
        return _read(connection, deadline)


@contextmanager
def _connected(
    target: Target, address: str, deadline: float
) -> Iterator[http.client.HTTPConnection]:
    """A connection to the judged address, under the name of the URL, cut off at the deadline.

    The timeout of a socket begins again with each byte, so a clock of our own ends slow answers.
    """
    sock: socket.socket = socket.create_connection((address, target.port), SOCKET_TIMEOUT_S)
    if target.scheme == "https":
        context = ssl.create_default_context()
        sock = context.wrap_socket(sock, server_hostname=target.host, do_handshake_on_connect=False)
    clock = threading.Timer(max(0.0, deadline - time.monotonic()), _cut, [sock])
    clock.start()
    try:
        if isinstance(sock, ssl.SSLSocket):
            sock.do_handshake()
        connection = http.client.HTTPConnection(target.host, target.port, SOCKET_TIMEOUT_S)
        connection.sock = sock
        yield connection
    finally:
        clock.cancel()
        sock.close()


def _cut(sock: socket.socket) -> None:
    """End both directions, so that whoever reads gets no more."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _read(connection: http.client.HTTPConnection, deadline: float) -> int:
    """The status, once the answer is read or has been long enough. Raises TimeoutError."""
    response = connection.getresponse()
    taken = 0
    while taken < MOST_BYTES:
        if time.monotonic() > deadline:
            raise TimeoutError
        piece = response.read1(8192)
        if not piece:
            break
        taken += len(piece)
    return response.status


def _hint(status: int) -> str:
    """What to do about some statuses."""
    if 300 <= status < 400:
        return ", a redirect, which webhooks do not follow: give the address it leads to"
    return ""
