"""Who may read the figures: whoever has the token, or asks from a named network.

Called by the probe `/metrics`. Without TEMPER_METRICS_TOKEN and TEMPER_METRICS_NETWORKS nobody may.
What would surprise: a request that came through a proxy never counts as coming from a network. A
proxy on this machine makes the whole world look like 127.0.0.1.
"""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

PROXY_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Via")
CLOSED = (
    "The figures are closed. Set TEMPER_METRICS_TOKEN and send it as `Authorization: Bearer TOKEN`,"
    " or name the networks that may read them in TEMPER_METRICS_NETWORKS.\n"
)


def refusal(request: HttpRequest) -> HttpResponse | None:
    """What to answer to somebody who may not read the figures; None to those who may."""
    if _has_token(request) or _is_near(request):
        return None
    status = 401 if settings.METRICS_TOKEN else 403
    response = HttpResponse(CLOSED, status=status, content_type="text/plain; charset=utf-8")
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="Temper figures"'
    return response


def _has_token(request: HttpRequest) -> bool:
    """Whether the request carries the token."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    wanted: str = settings.METRICS_TOKEN
    return bool(wanted) and scheme.lower() == "bearer" and constant_time_compare(given, wanted)


def _is_near(request: HttpRequest) -> bool:
    """Whether it came straight from one of the named networks."""
    if any(name in request.headers for name in PROXY_HEADERS):
        return False
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in network for network in settings.METRICS_NETWORKS)
