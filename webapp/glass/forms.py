"""The form of a step under glass: which prompt, how many completions, which settings.

Called by the index view. The model is chosen before, since domains, rewards and defaults follow
from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from training_core.contract.domains import Message
from training_core.contract.glass import (
    MOST_COMPLETIONS,
    MOST_NEW_TOKENS,
    DomainPrompt,
    GlassSpec,
    OwnPrompt,
)
from training_core.contract.rewards import iter_leaves
from training_core.contract.stages import RlStage
from webapp.glass.subjects import Subject
from webapp.runs.preflight import answer_faults

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

DOMAIN, OWN = "domain", "own"
HIGHEST_SEED = 2**31 - 1
LONGEST_TURN = 20_000
NUMBER = {"inputmode": "decimal", "autocomplete": "off"}
WHOLE = {"inputmode": "numeric", "autocomplete": "off"}


def whole(
    least: int, most: int, label: str | _StrPromise, help_text: str | _StrPromise
) -> forms.IntegerField:
    """A whole number within bounds."""
    return forms.IntegerField(
        min_value=least,
        max_value=most,
        label=label,
        help_text=help_text,
        widget=forms.TextInput(attrs=WHOLE),
    )


class GlassForm(forms.Form):
    """What is asked about one step; `subject` is what it is taken on."""

    kind = forms.ChoiceField(
        choices=[(DOMAIN, _("From a domain")), (OWN, _("My own"))], widget=forms.RadioSelect
    )
    domain = forms.ChoiceField(required=False, label=_("Domain"))
    index = whole(
        0, 10**9, _("Prompt number"), _("On the training side; each number is one prompt.")
    )
    system = forms.CharField(
        required=False,
        max_length=LONGEST_TURN,
        strip=False,
        label=_("System turn"),
        help_text=_("Empty for none."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    question = forms.CharField(
        required=False,
        max_length=LONGEST_TURN,
        strip=False,
        label=_("Prompt"),
        help_text=_("What the user says."),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    answer = forms.CharField(
        required=False,
        max_length=2000,
        label=_("Right answer"),
        help_text=_("What the rewards compare with."),
    )
    group_size = whole(
        2,
        MOST_COMPLETIONS,
        _("Completions"),
        format_lazy(_("The group, 2 to {most}."), most=MOST_COMPLETIONS),
    )
    max_new_tokens = whole(
        1,
        MOST_NEW_TOKENS,
        _("Longest completion"),
        format_lazy(_("In tokens, up to {most}."), most=MOST_NEW_TOKENS),
    )
    temperature = forms.FloatField(
        min_value=0.05,
        max_value=5,
        label=_("Temperature"),
        help_text=_("Higher makes the completions differ more."),
        widget=forms.TextInput(attrs=NUMBER),
    )
    learning_rate = forms.FloatField(
        min_value=0,
        max_value=1,
        label=_("Learning rate"),
        help_text=_("0 moves nothing."),
        widget=forms.TextInput(attrs=NUMBER),
    )
    seed = whole(0, HIGHEST_SEED, _("Seed"), _("The same seed gives the same completions."))
    keeps_moments = forms.BooleanField(
        required=False,
        label=_("Go on with the run's optimiser"),
        help_text=_("AdamW keeps the moments of the checkpoint, as the run's own next step would."),
    )

    def __init__(self, subject: Subject, data: Any = None) -> None:
        self.subject = subject
        super().__init__(data, initial=_initial(subject))
        names = [domain.name for domain in subject.spec.domains]
        self.fields["domain"] = forms.ChoiceField(
            choices=[(name, name) for name in names], required=False, label=_("Domain")
        )
        if not subject.has_moments:
            del self.fields["keeps_moments"]
        for name, field in self.fields.items():
            if name == "kind":
                continue
            described = f"id_{name}-help id_{name}-error"
            field.widget.attrs.setdefault("aria-describedby", described)
            if name in self.errors:
                field.widget.attrs["aria-invalid"] = "true"

    @property
    def reward_names(self) -> SafeString:
        """The leaves of the reward tree, to stand in a sentence."""
        leaves = iter_leaves(self.subject.spec.reward.root)
        return format_html_join(", ", "<code>{}</code>", ((leaf.name,) for leaf in leaves))

    def clean(self) -> dict[str, Any]:
        """What one field alone cannot tell."""
        found: dict[str, Any] = super().clean() or {}
        hidden = (
            ("domain", "index") if found.get("kind") == OWN else ("system", "question", "answer")
        )
        for name in hidden:  # nobody sees these, so nobody could mend them
            self.errors.pop(name, None)
        if found.get("kind") == OWN:
            self._check_own(found)
        elif found.get("kind") == DOMAIN and not found.get("domain"):
            self.add_error("domain", gettext("Choose the domain that the prompt comes from."))
        return found

    def _check_own(self, found: dict[str, Any]) -> None:
        """One's own prompt needs a turn and an answer that the rewards can use."""
        if not (found.get("question") or "").strip() and "question" not in self.errors:
            self.add_error("question", gettext("Write the prompt that the model shall complete."))
        if not found.get("answer"):
            if "answer" not in self.errors:
                self.add_error(
                    "answer", gettext("Give the right answer, so that rewards can compare.")
                )
            return
        for fault in answer_faults(self.subject.spec.reward, found["answer"]):
            self.add_error("answer", fault)

    def make_spec(self) -> GlassSpec:
        """What is to be done; call it on a valid form."""
        found, subject = self.cleaned_data, self.subject
        stage = subject.stage.model_dump()
        stage |= {"steps": 1, "prompts_per_step": 1, "group_size": found["group_size"]}
        stage |= {"shuffle_rewards": False}
        stage["sampling"] |= {
            "max_new_tokens": found["max_new_tokens"],
            "temperature": found["temperature"],
        }
        rate = {"learning_rate": found["learning_rate"], "warmup_steps": 0, "decay": "constant"}
        stage["optimiser"] |= rate
        stage["algorithm"] |= {"inner_epochs": 1, "minibatches": 1}
        return GlassSpec(
            model=subject.spec.model,
            checkpoint=subject.checkpoint.path if subject.checkpoint else "",
            keeps_moments=bool(found.get("keeps_moments")),
            prompt=self._prompt(),
            reward=subject.spec.reward,
            stage=RlStage.model_validate(stage),
            resources=subject.spec.resources,
            seed=found["seed"],
        )

    def _prompt(self) -> DomainPrompt | OwnPrompt:
        """Where the prompt comes from."""
        found, spec = self.cleaned_data, self.subject.spec
        if found["kind"] == DOMAIN:
            domain = next(each for each in spec.domains if each.name == found["domain"])
            return DomainPrompt(domain=domain, index=found["index"], seed=spec.seed)
        turns = [Message(role="user", content=found["question"])]
        if found["system"]:
            turns.insert(0, Message(role="system", content=found["system"]))
        return OwnPrompt(messages=tuple(turns), answer=found["answer"])


def _initial(subject: Subject) -> dict[str, Any]:
    """The settings of the stage, within what can be looked at."""
    stage = subject.stage
    return {
        "kind": DOMAIN,
        "domain": subject.spec.domains[0].name,
        "index": 0,
        "system": subject.spec.domains[0].system_prompt,
        "group_size": min(stage.group_size, MOST_COMPLETIONS),
        "max_new_tokens": min(stage.sampling.max_new_tokens, MOST_NEW_TOKENS),
        "temperature": stage.sampling.temperature,
        "learning_rate": stage.optimiser.learning_rate,
        "seed": subject.spec.seed,
        "keeps_moments": True,
    }
