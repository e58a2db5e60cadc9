"""Who may read the figures: whoever has the token.

Called by the probe `/metrics`. Without TEMPER_METRICS_TOKEN nobody may, wherever the request comes
from: an address proves nothing behind a proxy, which makes the whole world look like itself.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

CLOSED = "The figures are closed: set TEMPER_METRICS_TOKEN on the server to open them.\n"
WANTED = "The figures are for who has the token: send `Authorization: Bearer TOKEN`.\n"
PLAIN_TEXT = "text/plain; charset=utf-8"


def refusal(request: HttpRequest) -> HttpResponse | None:
    """What to answer to somebody who may not read the figures; None to those who may."""
    wanted: str = settings.METRICS_TOKEN
    if not wanted:
        return HttpResponse(CLOSED, status=403, content_type=PLAIN_TEXT)
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and constant_time_compare(given, wanted):
        return None
    response = HttpResponse(WANTED, status=401, content_type=PLAIN_TEXT)
    response["WWW-Authenticate"] = 'Bearer realm="Temper figures"'
    return response
