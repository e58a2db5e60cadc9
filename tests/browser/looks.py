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
    before = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).not_to_have_css("background-color", before)
    page.evaluate(STAND_STILL)
    tick = page.locator(PLOT_TEXT).first
    if tick.count():
        tick.scroll_into_view_if_needed()  # charts out of sight are drawn when they come into it
        expect(tick).to_have_css("fill", page.evaluate(MUTED))
        page.evaluate("scrollTo(0, 0)")
    yield "dark"
    page.emulate_media(color_scheme="light")


def looks_of(page: Page, screen: str) -> Iterator[str]:
    """The name of each look that a screen shows: wide and dark, or narrow."""
    if screen == "narrow":
        yield screen
        return
    for theme in in_each_theme(page):
        yield "dark" if theme == "dark" else screen


BACKGROUND = "getComputedStyle(document.body).backgroundColor"
STAND_STILL = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const fades = () => document.getAnimations().filter((a) => a instanceof CSSTransition);
  for (let frames = 0, quiet = 0; quiet < 2 && frames < 60; frames += 1) {
    await frame();
    quiet = fades().length ? 0 : quiet + 1;
  }
}"""
"""Waits, 60 frames at most, until no colour fades: what is inherited fades a frame later."""
MUTED = """() => {
  const probe = document.createElement("i");
  probe.style.color = "var(--muted)";
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}"""
