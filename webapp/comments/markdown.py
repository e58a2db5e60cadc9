"""A comment's text as safe HTML: a small part of Markdown, and @names of people who may read it.

Two nets, each of which would hold alone: markdown-it with raw HTML off and nothing enabled but the
rules below, then nh3, which lets through the tags below and links to http, https and mailto.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from html import escape

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

RULES = (
    "backticks",
    "blockquote",
    "emphasis",
    "escape",
    "fence",
    "link",
    "list",
    "newline",
    "strikethrough",
)
TAGS = {"a", "blockquote", "br", "code", "em", "li", "ol", "p", "pre", "s", "span", "strong", "ul"}
ATTRIBUTES = {"a": {"href"}, "span": {"class"}, "ol": {"start"}}
SCHEMES = {"http", "https", "mailto"}
MENTION = re.compile(r"(?<![\w@])@([\w.@+\-]+)")
"""What may be a user name after an @; the name itself may hold another, as an address does."""


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """The parser; it keeps nothing between two texts."""
    return MarkdownIt("zero", {"html": False, "breaks": True}).enable(list(RULES))


def render_comment(text: str, names: Collection[str]) -> SafeString:
    """The text as HTML; `names` are those whose @name is marked."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.children:
            token.children = [part for child in token.children for part in _marked(child, names)]
    html = parser.renderer.render(tokens, parser.options, {})
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        link_rel="nofollow noopener noreferrer",
    )
    return mark_safe(clean)


def mentioned(text: str, names: Collection[str]) -> set[str]:
    """Those of the names that the text mentions."""
    return {found for match in MENTION.finditer(text) if (found := _name(match[1], names))}


def _name(given: str, names: Collection[str]) -> str:
    """The name that was meant: a full stop or a hyphen may belong to the sentence."""
    for candidate in (given, given.rstrip(".-+@")):
        if candidate in names:
            return candidate
    return ""


def _marked(token: Token, names: Collection[str]) -> list[Token]:
    """A piece of text cut at its mentions; anything else as it is."""
    if token.type != "text":
        return [token]
    parts: list[Token] = []
    at = 0
    for match in MENTION.finditer(token.content):
        if name := _name(match[1], names):
            parts.append(_text(token.content[at : match.start()]))
            mark = Token("html_inline", "", 0)
            mark.content = f'<span class="mention">@{escape(name)}</span>'
            parts.append(mark)
            at = match.start() + 1 + len(name)
    return [*parts, _text(token.content[at:])]


def _text(content: str) -> Token:
    """Plain text, which the renderer escapes."""
    token = Token("text", "", 0)
    token.content = content
    return token
