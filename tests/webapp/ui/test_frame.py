"""The frame: vendored files, colours that can be read, no inline code, the model's progress bar."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from webapp.accounts.models import User
from webapp.ui.icons import ICONS
from webapp.ui.model_progress import read_model_progress
from webapp.ui.wording import STATES

ROOT = Path(settings.BASE_DIR)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
TOKENS = (ROOT / "static/css/tokens.css").read_text()


def test_htmx_is_the_file_that_was_vendored() -> None:
    folder = ROOT / "static/vendor/htmx"
    digest, name = (folder / "SHA256SUMS").read_text().split()
    assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert (folder / "LICENSE").is_file()


def test_the_icon_is_there_for_everybody(client: Client) -> None:
    answer = client.get("/favicon.ico")
    assert answer.headers["Location"].startswith("/static/img/mark")


@pytest.mark.django_db
def test_a_part_of_a_page_is_kept_by_no_browser(ada: User, browser: Client) -> None:
    page = browser.get("/runs/")
    part = browser.get("/runs/", headers={"HX-Request": "true"})
    assert "HX-Request" in page.headers["Vary"]
    assert "no-store" not in page.headers.get("Cache-Control", "")
    assert "no-store" in part.headers["Cache-Control"]
    assert len(part.content) < len(page.content)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_templates_hold_no_inline_code(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"\sstyle\s*=", text)
    assert not re.search(r"\son[a-z]+\s*=\s*[\"']", text)
    assert "<style" not in text
    assert "javascript:" not in text
    assert "|safe" not in text
    assert not re.search(r"https?://(?!www\.w3\.org)", text)


def test_every_state_has_an_icon() -> None:
    assert {look.icon for look in STATES.values()} <= set(ICONS)


def colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", block))


LIGHT = colours(TOKENS.split("@media")[0])
DARK = LIGHT | colours(TOKENS.split('[data-theme="dark"] {')[1])


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read_and_graphics_seen(theme: dict[str, str]) -> None:
    grounds = ("bg", "surface", "surface-2")
    texts = ("text", "muted", "accent", "ok", "warn", "bad", "info")
    weak = [
        (text, ground, round(contrast(theme[text], theme[ground]), 2))
        for text in texts
        for ground in grounds
        if contrast(theme[text], theme[ground]) < 4.5
    ]
    weak += [
        (tone, f"{tone}-soft", round(contrast(theme[tone], theme[f"{tone}-soft"]), 2))
        for tone in ("ok", "warn", "bad", "info", "accent")
        if contrast(theme[tone], theme[f"{tone}-soft"]) < 4.5
    ]
    weak += [
        (f"series-{n}", ground, round(contrast(theme[f"series-{n}"], theme[ground]), 2))
        for n in range(1, 9)
        for ground in ("bg", "surface")
        if contrast(theme[f"series-{n}"], theme[ground]) < 3
    ]
    weak += [
        (line, "surface", round(contrast(theme[line], theme["surface"]), 2))
        for line in ("line-strong", "focus")
        if contrast(theme[line], theme["surface"]) < 3
    ]
    assert contrast(theme["accent"], theme["accent-text"]) >= 4.5
    assert weak == []


def test_both_dark_themes_are_the_same() -> None:
    by_system = colours(TOKENS.split("@media")[1].split(':root[data-theme="dark"]')[0])
    by_choice = colours(TOKENS.split('[data-theme="dark"] {')[1])
    assert by_system == by_choice


def test_the_theme_cookie_is_rendered_and_nothing_else_is(browser: Client) -> None:
    browser.cookies["temper_theme"] = "dark"
    assert '<html lang="en" data-theme="dark">' in browser.get("/ui/styleguide/").content.decode()
    browser.cookies["temper_theme"] = '"><script>'
    assert '<html lang="en">' in browser.get("/ui/styleguide/").content.decode()


def test_the_style_guide_shows_five_states_of_each_component(browser: Client) -> None:
    page = browser.get(reverse("ui:styleguide")).content.decode()
    for state in ("empty", "loading", "error", "stale", "forbidden"):
        assert page.count(f'data-state-name="{state}"') == 9


def test_pages_send_a_strict_policy(browser: Client) -> None:
    policy = browser.get(reverse("ui:styleguide")).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


def progress(folder: Path, **values: object) -> None:
    (folder / "progress.json").write_text(json.dumps(values))


def test_the_models_progress_until_it_is_ready(browser: Client, tmp_path: Path) -> None:
    folder = Path(settings.MODELS_DIR)
    address = reverse("ui:model_progress")
    assert "not prepared yet" in browser.get(address).content.decode()
    now = datetime.now(UTC)
    progress(
        folder, state="running", done=50, total=200, message="Unpacking", updated_at=now.isoformat()
    )
    page = browser.get(address).content.decode()
    assert 'value="25"' in page
    assert "every 2s" in page
    progress(folder, state="failed", done=0, total=0, message="<b>disk full</b>", updated_at="")
    assert "&lt;b&gt;disk full" in browser.get(address).content.decode()
    progress(folder, state="ready", done=1, total=1, message="", updated_at=now.isoformat())
    assert browser.get(address).content.decode().strip() == ""


@pytest.mark.parametrize("content", ["", "{", "[]", '{"state": 5}', '{"done": 1}', "\0"])
def test_a_torn_progress_file_is_no_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "progress.json").write_text(content)
    assert read_model_progress(tmp_path).state == "waiting"


@pytest.mark.parametrize("age_s", [10, 600])
def test_a_silent_preparation_is_stale(age_s: int, tmp_path: Path) -> None:
    then = datetime.now(UTC) - timedelta(seconds=age_s)
    for moment in (then.isoformat(), then.timestamp()):
        progress(tmp_path, state="running", done=1, total=2, message="", updated_at=moment)
        assert read_model_progress(tmp_path).is_stale is (age_s > 120)


def test_errors_have_pages_of_their_own(browser: Client, ada: User) -> None:
    missing = browser.get("/nowhere/")
    assert missing.status_code == 404
    assert "Nothing lives at this address." in missing.content.decode()
    run = browser.get("/runs/999/")
    assert "There is no run #999." in run.content.decode()
