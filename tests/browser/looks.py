"""How pages are looked at: wide, dark and on a phone, without doing everything again for each.

A page follows the system's colours while it is open, so dark is the wide page once more. A phone
has a profile of its own: its window grows with what sticks out of it, and it has no mouse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Page, expect

WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 360, "height": 740}
PHONE: dict[str, Any] = {"viewport": NARROW, "has_touch": True, "is_mobile": True}
DESK: dict[str, Any] = {"viewport": WIDE}
SCREENS = {"wide": DESK, "narrow": PHONE}
PLOT_TEXT = "#curves .js-plotly-plot .xtick text"


def in_each_theme(page: Page) -> Iterator[str]:
    """The page as it is, then dark; light again in the end. Gives the theme's name."""
    yield "light"
    before = page.evaluate(SURFACE)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(SURFACE) != before, f"{page.url} does not follow the system's colours"
    ticks = page.locator(PLOT_TEXT)
    if ticks.count():
        colour = page.evaluate(MUTED)
        expect(ticks.first).to_have_css("fill", colour)
    yield "dark"
    page.emulate_media(color_scheme="light")


def looks_of(page: Page, screen: str) -> Iterator[str]:
    """The name of each look that a screen shows: wide and dark, or narrow."""
    if screen == "narrow":
        yield screen
        return
    for theme in in_each_theme(page):
        yield "dark" if theme == "dark" else screen


SURFACE = "getComputedStyle(document.body).backgroundColor"
MUTED = """() => {
  const probe = document.createElement("i");
  probe.style.color = "var(--muted)";
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}"""
