"""Texts in two languages: nothing unmarked, nothing untranslated, nothing left over."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.catalog import Message
from django.conf import settings
from django.template.base import Lexer, Token, TokenType
from django.test import Client

from scripts.messages import as_mo, as_po, catalogues, merged, read, strings

ROOT = Path(settings.BASE_DIR)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
ENGLISH_ONLY = {"api/docs.html", "ui/styleguide.html"}
"""Pages about code: the document of the API, and the sheet of components."""
ASKED = catalogues()
PLACES = re.compile(r"%\((\w+)\)[sd]|%[sd]|(?<!%)\{(\w*)\}|<(/?\w+)")
NAMES = frozenset(
    [
        *(
            "Temper",
            "Linux",
            "Python",
            "PostgreSQL",
            "Valkey",
            "Redis",
            "Celery",
            "Hugging",
            "Face",
        ),
        *("API", "YAML", "JSON", "JSONL", "CSV", "HTTP", "URL", "UUID", "Bearer", "SHA", "HMAC"),
        *("GPU", "CPU", "RAM", "MB", "GB", "Ctrl", "Esc", "Enter", "Shift", "Tab", "Home", "End"),
        *("KL", "SFT", "RL", "GRPO", "PPO", "LoRA", "REINFORCE", "pass", "Markdown"),
        *("AutoModelForCausalLM", "transformers", "safetensors"),
    ]
)
"""Words that are the same in every language."""
READ_ATTRIBUTES = frozenset(
    {
        "title",
        "aria-label",
        "placeholder",
        "alt",
        "aria-description",
        "data-confirm",
        "aria-roledescription",
    }
)
SILENT = frozenset({"script", "style", "code", "pre", "kbd", "samp"})


@pytest.mark.parametrize("name", sorted(ASKED))
def test_a_catalogue_is_whole(name: str) -> None:
    path = ROOT / name
    assert path.exists(), "Run `make messages`."
    kept = read(path)
    assert as_po(merged(ASKED[name], kept)) == path.read_bytes(), "Run `make messages`."
    assert as_mo(kept) == path.with_suffix(".mo").read_bytes(), "Run `make messages`."
    texts = [message for message in kept if message.id]
    missing = [message.id for message in texts if not all(strings(message))]
    assert not missing, f"{len(missing)} texts of {name} have no translation yet: {missing[:5]}"
    assert not [message.id for message in texts if message.fuzzy]
    wrong = [message.id for message in texts if not keeps_its_places(message)]
    assert not wrong, f"other placeholders or tags than in English: {wrong[:5]}"


def keeps_its_places(message: Message) -> bool:
    """Whether each translation has the placeholders and tags of its text."""
    ids = message.id if isinstance(message.id, tuple | list) else (message.id,)
    wanted = sorted(PLACES.findall(ids[-1]))
    return all(sorted(PLACES.findall(text)) == wanted for text in strings(message))


def test_the_same_text_reads_the_same_everywhere() -> None:
    found: dict[tuple[object, object], set[object]] = {}
    for name in ASKED:
        for message in read(ROOT / name):
            if message.id:
                found.setdefault((message.id, message.context), set()).add(strings(message))
    assert not {text: ways for text, ways in found.items() if len(ways) > 1}


class Reader(HTMLParser):
    """Collects what people read: text, and the attributes that are shown or spoken."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.silent += tag in SILENT
        self.read += [value for name, value in attrs if name in READ_ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in SILENT

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.read.append(data)


def unmarked(source: str) -> list[str]:
    """The words of a template that stand outside every mark of translation."""
    text, inside = "", False
    for token in Lexer(source).tokenize():
        word = token.contents.split(" ", 1)[0] if token.token_type == TokenType.BLOCK else ""
        inside = word == "blocktranslate" or (inside and word != "endblocktranslate")
        text += literal(token, inside)
    reader = Reader()
    reader.feed(text)
    words = [word for part in reader.read for word in re.findall(r"[A-Za-z]{2,}", part)]
    return [word for word in words if word not in NAMES]


LABEL = re.compile(r'^(?:icon \S+|progress \S+ \S+) "([^"]+)"')
"""Tags with a word that people read."""


def literal(token: Token, inside: bool) -> str:
    """What a token leaves on the page of itself."""
    if token.token_type == TokenType.TEXT:
        return " " if inside else token.contents
    label = LABEL.match(token.contents) if token.token_type == TokenType.BLOCK else None
    return f" {label[1]} " if label else " "


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_templates_mark_their_texts(path: Path) -> None:
    name = path.relative_to(ROOT / "templates").as_posix()
    if name in ENGLISH_ONLY or name.startswith("ui/styleguide/"):
        return
    assert not unmarked(path.read_text()), "Mark these with `translate` or `blocktranslate`."


@pytest.mark.django_db
def test_the_language_is_chosen(client: Client) -> None:
    english = client.get("/accounts/login/")
    assert (english.headers["Content-Language"], "Sign in" in english.text) == ("en", True)
    chinese = client.get("/accounts/login/", headers={"Accept-Language": "zh-CN,zh;q=0.9"})
    assert 'lang="zh-hans"' in chinese.text
    assert "Sign in" not in chinese.text
    back = client.post("/ui/language/", {"language": "zh-hans", "next": "/accounts/login/"})
    assert back.headers["Location"] == "/accounts/login/"
    assert client.get("/accounts/login/").headers["Content-Language"] == "zh-hans"
    assert client.get("/ui/texts.js", {"in": "zh-hans"}).status_code == 200


@pytest.mark.django_db
def test_programs_read_english(client: Client) -> None:
    client.cookies["temper_language"] = "zh-hans"
    answer = client.get("/api/v1/me")
    assert answer.status_code == 401
    assert "needs a token" in answer.json()["detail"]
