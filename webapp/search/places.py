"""Pages, deeds and presets: the things that every search looks through and no table holds.

Called by `webapp.search.find`. A new page appears by itself when it stands in the navigation.
"""

from __future__ import annotations

from django.urls import reverse

from training_core.contract.presets import PRESETS
from webapp.accounts.models import Project, User
from webapp.accounts.roles import Right
from webapp.search.hits import Hit
from webapp.ui.context_processors import NAVIGATION
from webapp.ui.projects import Standing

LAUNCH = "runs:launch"
MOST_MANAGED = 20


def main_pages() -> list[Hit]:
    """Those of the navigation; a new run is a deed."""
    return [
        Hit(entry.label, reverse(entry.url_name), entry.icon, keys=entry.keys)
        for entry in NAVIGATION
        if entry.url_name != LAUNCH
    ]


def pages(user: User, standing: Standing) -> list[Hit]:
    """Every page that needs no number and that the user may open."""
    account = reverse("people:account")
    found = [
        *main_pages(),
        Hit("Your account", account, "person", "projects, password", beside="settings profile me"),
        Hit("API tokens", reverse("tokens:index"), "key", "for programs", beside="key client"),
        Hit("Webhooks", reverse("webhooks:index"), "branch", "for programs", beside="notify"),
        Hit("API", reverse("api:openapi-view"), "file", "for programs", beside="rest openapi docs"),
        Hit("Projects", reverse("people:projects"), "people", "all that you are in"),
        Hit("Style guide", reverse("ui:styleguide"), "info", "every component"),
    ]
    for project in standing.where(Right.MANAGE)[:MOST_MANAGED]:
        found += _managed(project)
    if user.is_superuser:
        found += [
            Hit("Accounts", reverse("people:users"), "person", beside="users people sign-in link"),
            Hit("Audit log of everything", reverse("people:whole_audit"), "file"),
        ]
    if user.is_staff:
        found.append(Hit("Admin", reverse("admin:index"), "gear", "curation, support"))
    return found


def _managed(project: Project) -> list[Hit]:
    """Pages of a project for those who manage it."""
    named = (
        (f"Invitations to {project}", "people:invitations", "people"),
        (f"Audit log of {project}", "people:audit", "file"),
        (f"Settings of {project}", "people:settings", "gear"),
    )
    return [Hit(title, reverse(view, args=[project.slug]), icon) for title, view, icon in named]


def projects(standing: Standing) -> list[Hit]:
    """The projects that the person may see, each as the table of its runs; none for one alone."""
    if len(standing.projects) < 2:
        return []
    runs = reverse("runs:index")
    return [
        Hit(project.name, f"{runs}?project={project.slug}", "runs", "project, its runs")
        for project in standing.projects
    ]


def deeds(standing: Standing) -> list[Hit]:
    """What the person can do from anywhere."""
    found = []
    if standing.may_launch:
        words = "launch train start experiment"
        found.append(Hit("New run", reverse(LAUNCH), "plus", keys="n", beside=words))
    if standing.may_add_datasets:
        upload = reverse("datasets:upload")
        found.append(Hit("Upload a dataset", upload, "upload", beside="import csv jsonl"))
    return [
        *found,
        Hit("Switch the colour theme", "", "moon", beside="dark light mode", deed="theme"),
        Hit("Show the keyboard shortcuts", "", "keyboard", keys="?", beside="help", deed="keys"),
        Hit("Sign out", reverse("account_logout"), "out", beside="leave log out"),
    ]


def presets(standing: Standing) -> list[Hit]:
    """Presets, each as a filled launch form; none for who launches nothing."""
    if not standing.may_launch:
        return []
    return [
        Hit(
            preset.title,
            f"{reverse(LAUNCH)}?preset={preset.slug}#launch",
            "play",
            f"preset, {preset.spec.total_steps} steps",
            beside=f"preset launch {preset.slug} {preset.teaches}",
        )
        for preset in PRESETS
    ]
