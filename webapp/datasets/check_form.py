"""The form of the check page: what a newcomer decides about a run on a dataset, and nothing more.

Called by the check view. It stands on the document of an `Origin`; `fields_of` reads the fields out
of a document and `document` puts them back, so that everything that the page does not ask for stays
as the preset has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy as _

from training_core.contract.field_errors import FieldError
from training_core.contract.rewards import MatchReward, RewardSpec, iter_leaves
from webapp.datasets.proposals import Proposal, long_enough, number_changes, word_changes

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

NUMBERS, WORDS = "numbers", "words"
PATHS = {
    "name": "name",
    "domains.0.name": "domain",
    "domains.0.system_prompt": "system_prompt",
    "domains.0.dataset_version": "reward",
    "evaluation.max_new_tokens": "max_new_tokens",
}
"""Paths of a spec's errors to the fields that they are mended in."""
WHOLE = {"inputmode": "numeric", "autocomplete": "off"}


def _whole(least: int, most: int, label: _StrPromise) -> forms.IntegerField:
    """A whole number within bounds."""
    return forms.IntegerField(
        min_value=least, max_value=most, label=label, widget=forms.TextInput(attrs=WHOLE)
    )


class CheckForm(forms.Form):
    """The decisions; each one's help text is the reason for what is proposed."""

    name = forms.CharField(max_length=120, label=_("Name of the run"))
    domain = forms.RegexField(
        r"^[a-z0-9][a-z0-9_\-]*(/[a-z0-9_\-]+)*$",
        max_length=120,
        label=_("Domain"),
        error_messages={"invalid": _("Lower-case words joined by /, such as support/refunds.")},
    )
    reward = forms.ChoiceField(
        choices=[(NUMBERS, _("as numbers")), (WORDS, _("as words"))], label=_("Compare answers")
    )
    max_new_tokens = _whole(1, 4096, _("Longest completion (tokens)"))
    system_prompt = forms.CharField(
        required=False,
        max_length=20_000,
        strip=False,
        label=_("System prompt"),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    warm_up_steps = _whole(0, 1_000_000, _("Warm-up (steps)"))
    rl_steps = _whole(1, 1_000_000, _("RL (steps)"))

    def __init__(self, base: dict[str, Any], proposal: Proposal, data: Any = None, **values: Any):
        self.base = base
        super().__init__(data, initial={**fields_of(base), **values})
        for name, field in self.fields.items():
            field.help_text = _help(name, proposal)
            described = f"id_{name}-help id_{name}-error"
            field.widget.attrs.setdefault("aria-describedby", described)
            if name in self.errors:
                field.widget.attrs["aria-invalid"] = "true"

    def document(self) -> dict[str, Any]:
        """The launch document with what stands in the form, or with what is proposed."""
        values = self.cleaned_data if self.is_bound else self.initial
        return put_fields(self.base, dict(values))

    def take_errors(self, errors: list[FieldError]) -> None:
        """Errors of the spec, at the fields in which they are mended."""
        for error in errors:
            field = PATHS.get(error.path)
            where = f"{error.path}: " if error.path and field is None else ""
            self.add_error(field, f"{where}{error.message}")


def fields_of(document: dict[str, Any]) -> dict[str, Any]:
    """What the form asks for, as a document has it."""
    domain = document["domains"][0]
    stages = document["stages"]
    rl = [stage for stage in stages if stage["type"] == "rl"]
    reward = RewardSpec.model_validate(document["reward"])
    is_words = any(isinstance(leaf, MatchReward) for leaf in iter_leaves(reward.root))
    return {
        "name": document["name"],
        "domain": domain["name"],
        "reward": WORDS if is_words else NUMBERS,
        "system_prompt": domain["system_prompt"],
        "warm_up_steps": sum(stage["steps"] for stage in stages if stage["type"] == "sft"),
        "rl_steps": sum(stage["steps"] for stage in rl),
        "max_new_tokens": max(
            (stage["sampling"]["max_new_tokens"] for stage in rl),
            default=document["evaluation"]["max_new_tokens"],
        ),
    }


def put_fields(document: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The document with the form's values in their places; presets have one stage of each kind."""
    domain, *others = document["domains"]
    domain = {**domain, "name": values["domain"], "system_prompt": values["system_prompt"]}
    stages = []
    for stage in document["stages"]:
        if stage["type"] == "rl":
            sampling = {**stage["sampling"], "max_new_tokens": values["max_new_tokens"]}
            stages.append({**stage, "steps": values["rl_steps"], "sampling": sampling})
        elif values["warm_up_steps"]:
            stages.append({**stage, "steps": values["warm_up_steps"]})
    changes = (word_changes if values["reward"] == WORDS else number_changes)(document)
    return {
        **document,
        "name": values["name"],
        "domains": [domain, *others],
        "stages": stages,
        "reward": changes["reward"],
        "evaluation": long_enough(changes["evaluation"], stages),
    }


def _help(name: str, proposal: Proposal) -> str:
    """Why a field has the value that is proposed."""
    reasons: dict[str, str | _StrPromise] = {
        "name": _("What you call it."),
        "domain": _("From the dataset's name; charts and rollouts go by it."),
        "reward": proposal.reasons["reward"],
        "system_prompt": proposal.reasons["format"],
        "warm_up_steps": _("Shows the form on right answers before RL; 0 leaves it out."),
        "rl_steps": proposal.reasons["length"],
        "max_new_tokens": _("Holds the longest answers with their tags."),
    }
    return str(reasons[name])
