"""What a browser gets when a view has failed.

Django calls `server_error` and `bad_request` (`handler500`, `handler400` of the URL conf).
"""

from __future__ import annotations

import sys

from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.views.defaults import bad_request as plain_bad_request
from django.views.defaults import server_error as plain_server_error

RETRY_AFTER_S = 2
LONGEST_HOST = 253
AWAY = "The database cannot be reached at the moment. Try again in a few seconds."


def server_error(request: HttpRequest) -> HttpResponse:
    """503 while the database is away or restarting, which passes; 500 for anything else."""
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return plain_server_error(request)
    response: HttpResponse
    if request.path.startswith("/api/"):
        response = JsonResponse({"error": AWAY}, status=503)
    else:
        # Without the request: what every page is given asks the database who is signed in.
        response = HttpResponse(loader.get_template("503.html").render(), status=503)
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400; whoever asked under a name that is not allowed learns which variable allows it."""
    if not isinstance(exception, DisallowedHost):
        return plain_bad_request(request, exception)
    host = request.META.get("HTTP_HOST", "")[:LONGEST_HOST]
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    page = loader.get_template("400_host.html").render({"host": host, "name": name})
    return HttpResponse(page, status=400)
