"""The form for a new webhook. Called by its page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.accounts.models import Project, User
from webapp.accounts.roles import Right, projects_where
from webapp.webhooks.addresses import TargetRefused, parse_target
from webapp.webhooks.kinds import KINDS


class EndpointForm(forms.Form):
    """Address, whose runs, and what it wants to know of them."""

    url = forms.CharField(
        max_length=500,
        error_messages={
            "required": _("Give the URL that takes the messages."),
            "max_length": _("At most %(limit_value)s characters."),
        },
    )
    kinds = forms.MultipleChoiceField(
        choices=list(KINDS.items()),
        error_messages={
            "required": _("Choose at least one kind of message."),
            "invalid_choice": _("%(value)s is no kind of message."),
        },
    )
    project = forms.CharField(required=False, max_length=60)

    def __init__(self, user: User, data: Any = None) -> None:
        self.managed = list(projects_where(user, Right.MANAGE).filter(archived_at=None))
        super().__init__(data)

    def clean_project(self) -> Project | None:
        """The project whose runs it is told of; None for one's own runs."""
        slug = self.cleaned_data["project"]
        if not slug:
            return None
        found = next((project for project in self.managed if project.slug == slug), None)
        if found is None:
            raise forms.ValidationError(
                gettext("You are no admin of that project; choose another.")
            )
        return found

    def clean_url(self) -> str:
        """An address that messages may go to."""
        url = str(self.cleaned_data["url"])
        try:
            parse_target(url)
        except TargetRefused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
        return url

    def kind_boxes(self) -> list[dict[str, Any]]:
        """Each kind with its sentence and whether it is chosen."""
        default = {"run.succeeded", "run.failed"}
        chosen = set(self.data.getlist("kinds")) if self.is_bound else default  # type: ignore[attr-defined]  # a QueryDict
        return [
            {"value": kind, "words": words, "is_chosen": kind in chosen}
            for kind, words in KINDS.items()
        ]
