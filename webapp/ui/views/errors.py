"""What a browser gets when a view has failed.

Django calls `server_error` (`handler500` of the URL conf) with the error at hand.
"""

from __future__ import annotations

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.views.defaults import server_error as plain_server_error

RETRY_AFTER_S = 2
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
