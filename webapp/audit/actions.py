"""Every action that is recorded, with the words for it. A new one gets a line here."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

ACTIONS: dict[str, Promise] = {
    "account.sign_in": _("signed in"),
    "account.sign_out": _("signed out"),
    "account.sign_in_failed": _("failed to sign in"),
    "account.password": _("changed their password"),
    "user.make": _("made an account"),
    "user.deactivate": _("closed an account"),
    "user.activate": _("opened an account again"),
    "user.link": _("made a sign-in link"),
    "project.make": _("made a project"),
    "project.rename": _("renamed a project"),
    "project.archive": _("archived a project"),
    "project.unarchive": _("took a project out of the archive"),
    "member.add": _("added a member"),
    "member.role": _("changed a role"),
    "member.remove": _("removed a member"),
    "invitation.make": _("made an invitation link"),
    "invitation.revoke": _("revoked an invitation link"),
    "invitation.use": _("joined by an invitation link"),
    "token.make": _("made a token"),
    "token.revoke": _("revoked a token"),
    "admin.add": _("added something under Admin"),
    "admin.change": _("changed something under Admin"),
    "admin.delete": _("deleted something under Admin"),
    "webhook.make": _("made a webhook"),
    "webhook.enable": _("switched a webhook on"),
    "webhook.disable": _("switched a webhook off"),
    "webhook.delete": _("deleted a webhook"),
    "run.launch": _("launched a run"),
    "run.stop": _("stopped a run"),
    "run.pause": _("paused a run"),
    "run.resume": _("resumed a run"),
    "run.evaluate_now": _("asked for an evaluation"),
    "run.checkpoint_now": _("asked for a checkpoint"),
    "run.archive": _("archived a run"),
    "run.unarchive": _("took a run out of the archive"),
    "run.delete": _("deleted a run"),
    "dataset.upload": _("uploaded a file"),
    "dataset.discard": _("uploaded a file that could not be read"),
    "dataset.import": _("started an import"),
    "dataset.version": _("froze a dataset version"),
    "glass.ask": _("asked for a step under glass"),
    "glass.cancel": _("cancelled a step under glass"),
    "glass.delete": _("deleted a step under glass"),
    "tryout.ask": _("had a base model try a dataset"),
    "tryout.cancel": _("cancelled a tryout"),
    "tryout.delete": _("deleted a tryout"),
    "comment.delete": _("deleted a comment"),
}

KINDS: dict[str, Promise] = {
    "run": pgettext_lazy("kind of thing", "run"),
    "dataset": pgettext_lazy("kind of thing", "dataset"),
    "import": pgettext_lazy("kind of thing", "import"),
    "comment": pgettext_lazy("kind of thing", "comment"),
    "glass": pgettext_lazy("kind of thing", "glass"),
    "tryout": pgettext_lazy("kind of thing", "tryout"),
    "project": pgettext_lazy("kind of thing", "project"),
    "member": pgettext_lazy("kind of thing", "member"),
    "invitation": pgettext_lazy("kind of thing", "invitation"),
    "user": pgettext_lazy("kind of thing", "user"),
    "token": pgettext_lazy("kind of thing", "token"),
    "webhook": pgettext_lazy("kind of thing", "webhook"),
}
"""What an entry can be about, in a word; what is changed under Admin may be something else."""
