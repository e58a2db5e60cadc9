"""The webhooks page, and one webhook with what was sent to it."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.webhooks.access import endpoints_of, get_endpoint_for_user
from webapp.webhooks.forms import EndpointForm
from webapp.webhooks.outbox import note_test
from webapp.webhooks.services import delete_endpoint, disable, enable, make_endpoint

MOST_ENDPOINTS = 20
LISTED = 100


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """GET lists; POST makes one and shows its secret, this one time."""
    user = signed_in(request)
    fresh, form, status = None, EndpointForm(user), 200
    if request.method == "POST":
        form = EndpointForm(user, request.POST)
        if form.is_valid() and endpoints_of(user).count() >= MOST_ENDPOINTS:
            text = _("You have %(count)s webhooks; delete one first.")
            form.add_error("url", text % {"count": MOST_ENDPOINTS})
        status = 422
        if form.is_valid():
            fresh = make_endpoint(user, form.cleaned_data)
            form, status = EndpointForm(user), 201
    context = {"form": form, "endpoints": endpoints_of(user), "fresh": fresh}
    return render(request, "webhooks/page.html", context, status=status)


@never_cache
@require_safe
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One webhook with the newest messages to it; for a script's request only those."""
    endpoint = get_endpoint_for_user(signed_in(request), pk)
    deliveries = endpoint.deliveries.all()[:LISTED]
    name = "webhooks/deliveries.html" if wants_fragment(request) else "webhooks/detail.html"
    return render(request, name, {"endpoint": endpoint, "deliveries": deliveries})


@require_POST
def act(request: HttpRequest, pk: int, deed: str) -> HttpResponse:
    """Send a test, switch on or off, delete."""
    user = signed_in(request)
    endpoint = get_endpoint_for_user(user, pk)
    if deed == "test":
        note_test(endpoint)
        messages.success(request, _("A test is on its way; below is what came of it."))
    elif deed == "enable":
        enable(endpoint, user)
    elif deed == "disable":
        disable(endpoint, gettext_noop("Switched off by you."), user)  # shown translated
    elif deed == "delete":
        delete_endpoint(endpoint, user)
        text = _("The webhook to %(url)s is deleted.")
        messages.success(request, text % {"url": endpoint.url})
        return redirect("webhooks:index")
    else:
        raise Http404(_("A webhook has no command %(command)s.") % {"command": deed})
    return redirect("webhooks:detail", pk=pk)


@require_safe
def confirm_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks before a webhook is deleted."""
    endpoint = get_endpoint_for_user(signed_in(request), pk)
    name = "webhooks/delete.html" if wants_fragment(request) else "webhooks/delete_page.html"
    return render(request, name, {"endpoint": endpoint})
