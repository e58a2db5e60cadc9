"""The comments tab of a run: read, write, edit, delete. Forms work without scripts."""

from __future__ import annotations

import re

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from webapp.comments.access import get_commentable_run, get_deletable_comment, get_own_comment
from webapp.comments.models import Comment
from webapp.comments.refusals import CommentRefused
from webapp.comments.services import add_comment, delete_comment, edit_comment
from webapp.comments.thread import read_thread
from webapp.runs.access import get_run_for_user
from webapp.runs.models import Run
from webapp.runs.views.detail import run_context
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in

PLACE = ("step", "group", "completion")
_WHOLE = re.compile(r"[0-9]{1,15}")


@require_http_methods(["GET", "POST"])
def thread(request: HttpRequest, number: int) -> HttpResponse:
    """GET shows what was said; POST says something."""
    if request.method == "GET":
        return _page(request, get_run_for_user(request.user, number))
    run = get_commentable_run(request.user, number)
    place = {name: request.POST.get(name, "") for name in PLACE}
    try:
        comment = add_comment(run, signed_in(request), request.POST.get("text", ""), **place)
    except CommentRefused as refusal:
        return _page(request, run, refusal, request.POST.get("text", ""), status=422)
    return _back(comment)


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, number: int, pk: int) -> HttpResponse:
    """GET shows the text with what it said before; POST changes it."""
    comment = get_own_comment(request.user, number, pk)
    refusal, text = None, comment.text
    if request.method == "POST":
        text = request.POST.get("text", "")
        try:
            edit_comment(comment, text)
        except CommentRefused as error:
            refusal = error
        else:
            return _back(comment)
    context = {"run": comment.run, "comment": comment, "text": text, "refusal": refusal}
    return render(request, "comments/edit.html", context, status=422 if refusal else 200)


@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, number: int, pk: int) -> HttpResponse:
    """GET asks once more; POST takes a comment from the page."""
    comment = get_deletable_comment(request.user, number, pk)
    if request.method == "GET":
        name = "comments/delete.html" if wants_fragment(request) else "comments/delete_page.html"
        return render(request, name, {"run": comment.run, "comment": comment})
    try:
        delete_comment(comment, signed_in(request))
    except CommentRefused as refusal:
        messages.warning(request, refusal.message)
    return redirect("comments:thread", number=number)


def _back(comment: Comment) -> HttpResponse:
    """To the comment on its page."""
    address = reverse("comments:thread", args=[comment.run.number])
    return redirect(f"{address}#comment-{comment.pk}")


def _page(
    request: HttpRequest,
    run: Run,
    refusal: CommentRefused | None = None,
    text: str = "",
    status: int = 200,
) -> HttpResponse:
    """The tab, with what was refused."""
    given = request.POST if request.method == "POST" else request.GET
    before = request.GET.get("before", "")
    context = run_context(
        request,
        run,
        "comments",
        thread=read_thread(
            run, signed_in(request), int(before) if _WHOLE.fullmatch(before) else None
        ),
        refusal=refusal,
        text=text,
        place={name: given.get(name, "") for name in PLACE},
    )
    return render(request, "comments/thread.html", context, status=status)
