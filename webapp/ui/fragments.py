"""Whether a request wants a fragment of a page. Called by views that serve both."""

from __future__ import annotations

from django.http import HttpRequest


def wants_fragment(request: HttpRequest) -> bool:
    """True for a request of htmx, unless it restores a page from the browser's history."""
    details = getattr(request, "htmx", None)
    return bool(details) and not getattr(details, "history_restore_request", False)
