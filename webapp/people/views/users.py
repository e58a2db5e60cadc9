"""Accounts of the installation, for superusers: make one, close one, hand out a sign-in link."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.password_validation import password_validators_help_texts
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.members import make_user, switch_user
from webapp.accounts.models import Membership, User
from webapp.accounts.refusals import PeopleRefused
from webapp.accounts.services import create_login_link
from webapp.people.access import refuse_all_but_superusers
from webapp.ui.people import signed_in

LISTED = 500


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """GET lists all accounts; POST makes one."""
    actor = signed_in(request)
    refuse_all_but_superusers(actor)
    if request.method == "GET":
        return _page(request)
    try:
        name, password = (request.POST.get(key, "") for key in ("username", "password"))
        user = make_user(name.strip(), password, actor)
    except PeopleRefused as refusal:
        return _page(request, refusal=refusal, status=422)
    text = _("%(user)s has an account. Add them to a project next.")
    messages.success(request, text % {"user": user})
    return redirect("people:users")


@require_POST
def switch(request: HttpRequest, pk: int) -> HttpResponse:
    """Close an account (`to=closed`), or open it again (`to=open`)."""
    actor = signed_in(request)
    refuse_all_but_superusers(actor)
    user, wanted = get_object_or_404(User, pk=pk), request.POST.get("to", "")
    try:
        if wanted not in {"open", "closed"}:
            raise PeopleRefused(_("Say what the account is to be: open or closed."))
        switch_user(user, actor, is_active=wanted == "open")
    except PeopleRefused as refusal:
        return _page(request, refusal=refusal, status=422)
    is_open = wanted == "open"
    text = (
        _("The account of %(user)s is open.")
        if is_open
        else _("The account of %(user)s is closed.")
    )
    messages.success(request, text % {"user": user})
    return redirect("people:users")


@never_cache  # the answer holds the link, once
@require_POST
def link(request: HttpRequest, pk: int) -> HttpResponse:
    """A link that signs somebody in once: there is no mail to send them one."""
    actor = signed_in(request)
    refuse_all_but_superusers(actor)
    user = get_object_or_404(User, pk=pk, is_active=True)
    path = create_login_link(user, actor)
    return _page(request, link=request.build_absolute_uri(path), linked=user)


def _page(
    request: HttpRequest,
    refusal: PeopleRefused | None = None,
    link: str = "",
    linked: User | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page."""
    memberships = Membership.objects.select_related("project").order_by("project__name")
    users = User.objects.order_by("-is_active", "username")
    wanted = request.GET.get("q", "").replace("\0", "").strip()[:150]
    if wanted:
        users = users.filter(username__icontains=wanted)
    found = users.prefetch_related(Prefetch("memberships", queryset=memberships))
    shown = list(found[: LISTED + 1])
    context = {
        "users": shown[:LISTED],
        "is_cut": len(shown) > LISTED,
        "listed": LISTED,
        "wanted": wanted,
        "refusal": refusal,
        "given": request.POST.get("username", "") if refusal else "",
        "link": link,
        "linked": linked,
        "password_rules": " ".join(password_validators_help_texts()),
    }
    return render(request, "people/users.html", context, status=status)
