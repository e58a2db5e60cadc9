"""Pages, deeds and presets: the things that every search looks through and no table holds.

Called by `webapp.search.find`. A new page appears by itself when it stands in the navigation.
"""

from __future__ import annotations

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import override

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
        Hit(
            str(entry.label),
            reverse(entry.url_name),
            entry.icon,
            keys=entry.keys,
            beside=_english(entry.label),
        )
        for entry in NAVIGATION
        if entry.url_name != LAUNCH
    ]


def _english(label: str | Promise) -> str:
    """The English name, which finds a page in every language."""
    with override("en"):
        return str(label)


def pages(user: User, standing: Standing) -> list[Hit]:
    """Every page that needs no number and that the user may open."""
    account, programs = reverse("people:account"), _("for programs")
    found = [
        *main_pages(),
        Hit(
            _("Your account"),
            account,
            "person",
            _("projects, password"),
            beside=_("settings profile me"),
        ),
        Hit(_("API tokens"), reverse("tokens:index"), "key", programs, beside=_("key client")),
        Hit(_("Webhooks"), reverse("webhooks:index"), "branch", programs, beside=_("notify")),
        Hit("API", reverse("api:openapi-view"), "file", programs, beside=_("rest openapi docs")),
        Hit(_("Projects"), reverse("people:projects"), "people", _("all that you are in")),
        Hit(_("Style guide"), reverse("ui:styleguide"), "info", _("every component")),
    ]
    for project in standing.where(Right.MANAGE)[:MOST_MANAGED]:
        found += _managed(project)
    if user.is_superuser:
        found += [
            Hit(
                _("Accounts"),
                reverse("people:users"),
                "person",
                beside=_("users people sign-in link"),
            ),
            Hit(_("Audit log of everything"), reverse("people:whole_audit"), "file"),
        ]
    if user.is_staff:
        found.append(Hit(_("Admin"), reverse("admin:index"), "gear", _("curation, support")))
    return found


def _managed(project: Project) -> list[Hit]:
    """Pages of a project for those who manage it."""
    named = (
        (_("Invitations to %(project)s"), "people:invitations", "people"),
        (_("Audit log of %(project)s"), "people:audit", "file"),
        (_("Settings of %(project)s"), "people:settings", "gear"),
    )
    return [
        Hit(title % {"project": project}, reverse(view, args=[project.slug]), icon)
        for title, view, icon in named
    ]


def projects(standing: Standing) -> list[Hit]:
    """The projects that the person may see, each as the table of its runs; none for one alone."""
    if len(standing.projects) < 2:
        return []
    runs = reverse("runs:index")
    return [
        Hit(project.name, f"{runs}?project={project.slug}", "runs", _("project, its runs"))
        for project in standing.projects
    ]


def deeds(standing: Standing) -> list[Hit]:
    """What the person can do from anywhere."""
    found = []
    if standing.may_launch:
        words = _("launch train start experiment")
        found.append(Hit(_("New run"), reverse(LAUNCH), "plus", keys="n", beside=words))
    if standing.may_add_datasets:
        upload = reverse("datasets:upload")
        found.append(Hit(_("Upload a dataset"), upload, "upload", beside=_("import csv jsonl")))
    return [
        *found,
        Hit(_("Switch the colour theme"), "", "moon", beside=_("dark light mode"), deed="theme"),
        Hit(
            _("Show the keyboard shortcuts"),
            "",
            "keyboard",
            keys="?",
            beside=_("help"),
            deed="keys",
        ),
        Hit(_("Sign out"), reverse("account_logout"), "out", beside=_("leave log out")),
    ]


def presets(standing: Standing) -> list[Hit]:
    """Presets, each as a filled launch form; none for who launches nothing."""
    if not standing.may_launch:
        return []
    found = _("preset launch")
    return [
        Hit(
            _(preset.title),
            f"{reverse(LAUNCH)}?preset={preset.slug}#launch",
            "play",
            _("preset, %(steps)s steps") % {"steps": preset.spec.total_steps},
            beside=f"{found} {preset.slug} {preset.title} {_(preset.teaches)}",
        )
        for preset in PRESETS
    ]
