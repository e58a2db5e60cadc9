"""Pages, deeds and presets: the things that every search looks through and no table holds.

Called by `webapp.search.find`. A new page appears by itself when it stands in the navigation.
"""

from __future__ import annotations

from django.urls import reverse

from webapp.accounts.models import User
from webapp.runs.preset_cards import preset_cards
from webapp.search.hits import Hit
from webapp.ui.context_processors import NAVIGATION

LAUNCH = "runs:launch"


def pages(user: User) -> list[Hit]:
    """Every page that needs no number."""
    found = [
        Hit(entry.label, reverse(entry.url_name), entry.icon, keys=entry.keys)
        for entry in NAVIGATION
        if entry.url_name != LAUNCH
    ]
    found.append(Hit("Style guide", reverse("ui:styleguide"), "info", "every component"))
    if user.is_staff:
        found.append(Hit("Admin", reverse("admin:index"), "gear", "people, curation, support"))
    return found


def deeds() -> list[Hit]:
    """What can be done from anywhere."""
    return [
        Hit("New run", reverse(LAUNCH), "plus", keys="n", beside="launch train start experiment"),
        Hit("Upload a dataset", reverse("datasets:upload"), "upload", beside="import csv jsonl"),
        Hit("Switch the colour theme", "", "moon", beside="dark light mode", deed="theme"),
        Hit("Show the keyboard shortcuts", "", "keyboard", keys="?", beside="help", deed="keys"),
        Hit("Sign out", reverse("account_logout"), "out", beside="leave log out"),
    ]


def presets() -> list[Hit]:
    """Presets, each as a filled launch form."""
    return [
        Hit(
            card.preset.title,
            f"{reverse(LAUNCH)}?preset={card.preset.slug}#launch",
            "play",
            f"preset, {card.timing.words}",
            beside=f"preset launch {card.preset.slug} {card.preset.teaches}",
        )
        for card in preset_cards()
    ]
