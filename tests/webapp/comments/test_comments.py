"""Comments: who writes, edits and deletes them, what they may hold, and where they show."""

from __future__ import annotations

import html
import re
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.hostile import NAMES
from tests.webapp.members import become
from tests.webapp.stories import Story, launch
from webapp.accounts.models import Role, User
from webapp.audit.models import AuditEntry
from webapp.comments import services
from webapp.comments.markdown import mentioned, render_comment
from webapp.comments.models import Comment, CommentEdit
from webapp.comments.refusals import CommentRefused
from webapp.metrics.marks import marks_of
from webapp.metrics.models import LiveEvent
from webapp.rollouts.models import RolloutGroup
from webapp.runs.models import Run


@pytest.fixture
def run(bob: User) -> Run:
    """A run of Bob's with rollouts."""
    return Story(launch(bob)).start().step(61).rollouts(61, groups=1, size=4).run


def thread(run: Run) -> str:
    return reverse("comments:thread", args=[run.number])


def test_a_comment_is_written_read_edited_and_deleted(run: Run, ada: User, browser: Client) -> None:
    assert "Nobody has said anything yet" in browser.get(thread(run)).content.decode()
    answer = browser.post(thread(run), {"text": "Reward **hacking** at 40?"})
    comment = Comment.objects.get()
    assert answer.headers["Location"] == f"{thread(run)}#comment-{comment.pk}"
    page = browser.get(thread(run)).content.decode()
    assert "Reward <strong>hacking</strong> at 40?" in page
    browser.post(f"{thread(run)}{comment.pk}/edit/", {"text": "No: all is well"})
    assert [edit.text for edit in CommentEdit.objects.all()] == ["Reward **hacking** at 40?"]
    assert (
        "Reward **hacking** at 40?"
        in browser.get(f"{thread(run)}{comment.pk}/edit/").content.decode()
    )
    assert "edited" in browser.get(thread(run)).content.decode()
    asked = browser.get(f"{thread(run)}{comment.pk}/delete/").content.decode()
    assert "Delete this comment of" in asked
    assert "No: all is well" in asked
    browser.post(f"{thread(run)}{comment.pk}/delete/")
    assert "all is well" not in browser.get(thread(run)).content.decode()
    comment.refresh_from_db()
    assert (comment.text, comment.deleted_by) == ("", "ada")
    assert not CommentEdit.objects.exists()
    assert AuditEntry.objects.filter(action="comment.delete", actor="ada").count() == 1


@pytest.mark.parametrize("role", Role)
def test_who_writes_and_who_deletes(role: Role, run: Run, ada: User, bob: User) -> None:
    client = Client()
    client.force_login(ada)
    become(ada, role)
    said = services.add_comment(run, bob, "mine")
    page = client.get(thread(run)).content.decode()
    writes = role is not Role.VIEWER
    assert ("Say it" in page) == writes
    assert client.post(thread(run), {"text": "hello"}).status_code == (302 if writes else 403)
    edited = client.post(f"{thread(run)}{said.pk}/edit/", {"text": "x"})
    assert edited.status_code == 403
    assert "bob wrote this; only they edit it." in edited.content.decode()
    deleted = client.post(f"{thread(run)}{said.pk}/delete/")
    assert deleted.status_code == (302 if role is Role.ADMIN else 403)


def test_a_comment_is_of_its_run_alone(run: Run, ada: User, bob: User, browser: Client) -> None:
    said = services.add_comment(run, ada, "here")
    elsewhere = thread(launch(bob))
    for deed in ("edit", "delete"):
        assert browser.post(f"{elsewhere}{said.pk}/{deed}/", {"text": "x"}).status_code == 404
    become(ada, None)
    assert browser.post(f"{thread(run)}{said.pk}/edit/", {"text": "x"}).status_code == 404


@pytest.mark.parametrize(
    ("posted", "sentence"),
    [
        ({"text": "  "}, "Write something first."),
        ({"text": "a\0b"}, "holds a NUL"),
        ({"text": "x" * 10_001}, "At most 10,000 characters"),
        ({"text": "x", "step": "-1"}, "The step is a whole number"),
        ({"text": "x", "step": "9999999"}, "The step is a whole number"),
        ({"text": "x", "step": "²"}, "The step is a whole number"),
        ({"text": "x", "group": "g"}, "belongs to a step"),
        ({"text": "x", "step": "61", "group": "nope\0"}, "no such group of rollouts"),
        ({"text": "x", "step": "61", "group": "GROUP", "completion": "4"}, "completions 0 to 3"),
    ],
)
def test_what_cannot_be_said(
    posted: dict[str, str], sentence: str, run: Run, browser: Client
) -> None:
    group = RolloutGroup.objects.get().group_id
    posted = {name: value.replace("GROUP", group) for name, value in posted.items()}
    answer = browser.post(thread(run), posted)
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert not Comment.objects.exists()


def test_a_step_is_marked_and_a_group_is_linked(run: Run, ada: User, browser: Client) -> None:
    group = RolloutGroup.objects.get().group_id
    services.add_comment(run, ada, "odd", step="61", group=group, completion="2")
    services.add_comment(run, ada, "odd", step="61")
    services.add_comment(run, ada, "all of it")
    assert marks_of(run)["comments"] == [61]
    page = browser.get(thread(run)).content.decode()
    assert "rollouts of step 61, completion 2" in page
    row = RolloutGroup.objects.get()
    linked = f"/runs/{run.number}/rollouts/?step=61&amp;group={row.pk}#completion-2"
    assert linked in page
    shown = browser.get(html.unescape(linked)).content.decode()
    assert 'id="completion-2"' in shown
    assert f"group={quote(group, safe='')}&amp;completion=2#text" in shown
    RolloutGroup.objects.all().delete()  # as while the run is read anew from its directory
    assert "?step=61#completion-2" in browser.get(thread(run)).content.decode()
    head = browser.get(f"/runs/{run.number}/").content.decode()
    assert re.search(r"data-comment-count>3<", head)


def test_a_viewer_is_offered_no_comment(run: Run, ada: User, browser: Client) -> None:
    offer = f"{thread(run)}?step=61"
    rollouts = f"/runs/{run.number}/rollouts/"
    assert offer in browser.get(rollouts).content.decode()
    become(ada, Role.VIEWER)
    assert offer not in browser.get(rollouts).content.decode()
    assert "Comments are written by a reviewer" in browser.get(thread(run)).content.decode()


def test_a_long_thread_has_pages(
    run: Run, ada: User, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.comments.thread.PAGE_SIZE", 3)
    said = [services.add_comment(run, ada, f"number {n}") for n in range(7)]
    seen, address = [], thread(run)
    while address:
        page = browser.get(address)
        shown = page.context["thread"]
        seen = [it.comment for it in shown.comments] + seen
        address = f"{thread(run)}?before={shown.earlier}" if shown.earlier else ""
        assert ("Newest comments" in page.content.decode()) == (not shown.is_newest)
    assert seen == said
    empty = browser.get(f"{thread(run)}?before=1").content.decode()
    assert "Nothing was said before that" in empty
    assert browser.get(f"{thread(run)}?before=nonsense").context["thread"].is_newest


def test_a_page_of_comments_asks_no_more_for_many(
    run: Run, ada: User, bob: User, browser: Client
) -> None:
    group = RolloutGroup.objects.get().group_id

    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert browser.get(thread(run)).status_code == 200
        return len(queries)

    for author in (ada, bob):
        services.add_comment(run, author, "odd", step="61", group=group)
    few = asked()
    for n in range(10):
        said = services.add_comment(run, ada, f"@bob {n}", step="61", group=group)
        services.edit_comment(said, f"@ada {n}")
    assert asked() == few


def test_who_is_mentioned_is_told(run: Run, ada: User, bob: User, browser: Client) -> None:
    services.add_comment(run, bob, "look, @ada")
    services.add_comment(run, bob, "look, @bob")
    assert browser.get(thread(run)).content.decode().count("mentions you") == 1


def test_pages_hear_of_it(run: Run, ada: User) -> None:
    services.add_comment(run, ada, "one")
    told = LiveEvent.objects.filter(topic=f"run:{run.pk}", kind="comment").latest("id")
    assert told.data == {"count": 1}


def test_a_deleted_comment_is_not_edited(run: Run, ada: User) -> None:
    said = services.add_comment(run, ada, "one")
    services.delete_comment(said, ada)
    with pytest.raises(CommentRefused, match="just been deleted"):
        services.edit_comment(said, "two")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*a* `b<c` ~~d~~", "<em>a</em> <code>b&lt;c</code> <s>d</s>"),
        ("a\nb", "a<br>\nb"),
        ("- a\n- b", "<li>a</li>"),
        ("> q", "<blockquote>"),
        ("@ada, @bob. @eve", '<span class="mention">@ada</span>, '),
        ("@bob.", '<span class="mention">@bob</span>.'),
        ("x@ada", "x@ada"),
        ("@a_b_c and *@a_b_c*", '<span class="mention">@a_b_c</span> and <em><span class='),
        ("@ada@example.org.", '<span class="mention">@ada@example.org</span>.'),
        ("`@ada`", "<code>@ada</code>"),
        ("[@ada](/runs/)", '<a href="/runs/" rel="nofollow noopener noreferrer"><span'),
        ("# no heading", "<p># no heading</p>"),
        ("![x](/a.png)", '!<a href="/a.png"'),
        ("| a |\n|---|", "<p>| a |<br>\n|---|</p>"),
        ("a\u202eb\n\nc", "<p>a\u202eb</p>\n<p>c</p>"),
        ("[x](https://e.example)", 'rel="nofollow noopener noreferrer"'),
    ],
)
def test_what_markdown_becomes(text: str, expected: str) -> None:
    assert expected in render_comment(text, ["ada", "bob", "a_b_c", "ada@example.org"])


@pytest.mark.parametrize(
    "text",
    [
        *NAMES,
        "[x](javascript:alert(1))",
        "[x](java&#115;cript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "![x](https://evil.example/x.png)",
        "<https://e.example>",
        "`<script>alert(1)</script>`",
        "```<img src=x onerror=alert(1)>\n<script>alert(1)</script>\n```",
        "> " * 500 + "x",
        "[" * 5000,
        "*" * 5000,
        "@" * 5000,
        "[a](" * 2500,
        "*a_" * 3300,
        "`" * 10_000,
        "`a``" * 2500,
        "~~a" * 3300,
        "- " * 5000,
        "1. " * 3300,
        "\\" * 10_000,
        "<" * 10_000,
        "e\u0301" * 3300,
        "\u202e" * 10_000,
        "[x](vbscript:x) [x](JaVaScRiPt:x) [x](\x01javascript:x) [x]( javascript:x)",
        '[x](https://e.example "a" onmouseover=alert(1))',
        '[x](https://e.example/"onmouseover="alert(1))',
        '[x](<https://e.example/"><script>alert(1)</script>>)',
        '<span class="mention">@ada</span>',
        "&lt;script&gt;&#60;script&#62;alert(1)",
    ],
)
def test_hostile_texts(text: str) -> None:
    rendered = render_comment(text, ["ada", "<b>x</b>", '"><svg onload=alert(1)>'])
    tags = set(re.findall(r"<\s*([a-zA-Z!/]+)", rendered))
    allowed = {"a", "blockquote", "br", "code", "em", "li", "ol", "p", "pre", "s", "span"}
    allowed |= {"strong", "ul"}
    assert {tag.strip("/") for tag in tags} <= allowed
    assert not re.search(r"<[^>]*\son\w+=", rendered)
    assert 'href="javascript' not in rendered.lower()
    assert 'href="data' not in rendered.lower()


def test_who_is_mentioned() -> None:
    assert mentioned("@ada and @bob. x@eve @ada", ["ada", "bob", "eve"]) == {"ada", "bob"}
