"""The form for a new token. Called by the token page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from webapp.api.scopes import SCOPE_WORDS, Scope
from webapp.api.services import DEFAULT_DAYS, MOST_DAYS


class TokenForm(forms.Form):
    """Name, scopes, lifetime."""

    name = forms.CharField(
        max_length=80,
        error_messages={
            "required": _("Say what the token is for, so that you know it again."),
            "max_length": _("At most %(limit_value)s characters."),
        },
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, words) for scope, words in SCOPE_WORDS.items()],
        error_messages={
            "required": _("Choose at least one scope."),
            "invalid_choice": _("%(value)s is no scope."),
        },
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        initial=DEFAULT_DAYS,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"),
            format_lazy(_("A whole number from 1 to {most}."), most=MOST_DAYS),
        ),
    )

    def scope_boxes(self) -> list[dict[str, Any]]:
        """Each scope with its sentence and whether it is chosen; reading is, to begin with."""
        chosen = set(self.data.getlist("scopes")) if self.is_bound else {Scope.READ.value}  # type: ignore[attr-defined]  # a QueryDict
        return [
            {"value": scope.value, "words": words, "is_chosen": scope.value in chosen}
            for scope, words in SCOPE_WORDS.items()
        ]
