"""Every component in each of its five states, on one page, for looking and for tests."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.ui.wording import STATES


def styleguide(request: HttpRequest) -> HttpResponse:
    """The page; it needs no data of the installation."""
    return render(request, "ui/styleguide.html", {"states": list(STATES)})
