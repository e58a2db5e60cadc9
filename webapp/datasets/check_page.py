"""The check page of a dataset version: proposals, what the rewards say to known replies, prompts as
the model gets them, and what a base model makes of a few rows.

Made by the check view, drawn by `templates/datasets/check*.html`. It judges with the functions that
a launch and a run use: `check_document`, `score_replies`, `prompt_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from training_core.contract.domains import DatasetDomain, DatasetRecord, Message
from training_core.contract.presets import PRESETS, Preset
from training_core.contract.spec import RunSpec
from training_core.contract.tryout import MOST_ROWS, TRIES, TryoutSpec
from training_core.contract.yaml_text import spec_to_yaml
from webapp.datasets.check_form import CheckForm, fields_of
from webapp.datasets.known_replies import KnownReply, all_answers_are_equal, score_known_replies
from webapp.datasets.models import DatasetVersion
from webapp.datasets.proposals import propose_preset
from webapp.datasets.services import sample_records, spread
from webapp.glass.models import GlassStep
from webapp.glass.tryout_page import TryoutView, read_tryout_view
from webapp.runs.forecast import Forecast, Queue, forecast, queue_now
from webapp.runs.forms import check_document
from webapp.runs.origins import Origin, new_key
from webapp.runs.preflight import prompt_of
from webapp.runs.refusals import LaunchRefused

SCORED_ROWS = 100
SHOWN_PROMPTS = 5


class ShownPrompt(NamedTuple):
    """One record as the model gets it."""

    messages: Sequence[Message]
    answer: str


@dataclass
class CheckPage:
    """What the page shows."""

    version: DatasetVersion
    preset: Preset
    proposed: Preset
    """The preset that the dataset speaks for."""
    why_preset: str
    form: CheckForm
    origin: Origin
    tryout: GlassStep | None = None
    key: str = field(default_factory=new_key)
    refusal: str = ""
    """Why a launch was refused, when it is no field's fault."""

    @classmethod
    def opening(
        cls,
        version: DatasetVersion,
        preset: Preset | None = None,
        tryout: GlassStep | None = None,
    ) -> CheckPage:
        """As it opens: with what is proposed, or with what was tried."""
        values: dict[str, Any] = {}
        if tryout is not None and (run := _tried_run(tryout)) is not None:
            preset = preset or _preset_of(run)
            values = fields_of(run.model_dump(mode="json"))
        return cls._make(version, preset, None, values, tryout)

    @classmethod
    def from_post(
        cls,
        version: DatasetVersion,
        preset: Preset | None,
        posted: Mapping[str, str],
        tryout: GlassStep | None,
    ) -> CheckPage:
        """As a browser sent it, checked."""
        page = cls._make(version, preset, posted, {}, tryout)
        page.key = posted.get("idempotency_key", "") or page.key
        if page.form.is_valid() and (checked := page.checked):
            page.form.take_errors(checked.errors)
        return page

    @classmethod
    def _make(
        cls,
        version: DatasetVersion,
        preset: Preset | None,
        posted: Mapping[str, str] | None,
        values: dict[str, Any],
        tryout: GlassStep | None,
    ) -> CheckPage:
        """On the preset that was chosen, else on the one that is proposed."""
        proposed, why = propose_preset(version)
        preset = preset or proposed
        origin = Origin(dataset=version, preset=preset)
        assert origin.proposal is not None
        form = CheckForm(origin.document(), origin.proposal, posted, **values)
        return cls(version, preset, proposed, why, form, origin, tryout)

    @cached_property
    def checked(self) -> Any:
        """The document after validation; None while fields are wrong by themselves."""
        if self.form.is_bound and not self.form.is_valid():
            return None
        return check_document(self.form.document(), self.version.dataset.project)

    @property
    def spec(self) -> RunSpec | None:
        """The run, when its document is one at all."""
        return self.checked.spec if self.checked else None

    @property
    def launchable_spec(self) -> RunSpec | None:
        """The run, when nothing is wrong with it."""
        checked = self.checked
        return checked.spec if checked and checked.is_launchable else None

    @property
    def faults(self) -> list[tuple[str, str]]:
        """(label, sentence) of everything that is wrong."""
        if self.form.is_bound:
            return [
                (str(self.form.fields[name].label) if name in self.form.fields else "", str(words))
                for name, sentences in self.form.errors.items()
                for words in sentences
            ]
        return [(error.path, error.message) for error in self.checked.errors]

    @property
    def presets(self) -> tuple[Preset, ...]:
        """What a run may start from."""
        return PRESETS

    @cached_property
    def records(self) -> list[DatasetRecord]:
        """Training records to score, spread over the version."""
        return sample_records(self.version, SCORED_ROWS)

    @property
    def domain(self) -> DatasetDomain | None:
        """The dataset as a domain of the run."""
        domain = self.spec.domains[0] if self.spec else None
        return domain if isinstance(domain, DatasetDomain) else None

    @cached_property
    def replies(self) -> list[KnownReply]:
        """What the rewards say to replies whose worth is known."""
        if self.spec is None or self.domain is None:
            return []
        return score_known_replies(self.spec.reward, self.domain, self.records)

    @property
    def has_one_answer(self) -> bool:
        """Whether one reply is right for all rows."""
        return bool(self.records) and all_answers_are_equal(self.records)

    @cached_property
    def prompts(self) -> list[ShownPrompt]:
        """A few records as the model gets them."""
        domain = self.domain
        if domain is None:
            return []
        return [
            ShownPrompt(prompt_of(domain, record), record.answer)
            for record in spread(self.records, SHOWN_PROMPTS)
        ]

    @property
    def tries(self) -> int:
        """Completions of a tryout."""
        return TRIES * min(MOST_ROWS, len(self.records))

    @property
    def forecast(self) -> Forecast | None:
        """What the run will do."""
        return forecast(self.spec) if self.spec else None

    @property
    def queue(self) -> Queue:
        """What it would meet."""
        return queue_now()

    @property
    def yaml(self) -> str:
        """The run for the launch page, which has every setting."""
        return spec_to_yaml(self.spec) if self.spec else ""

    @cached_property
    def tryout_view(self) -> TryoutView | None:
        """What the base model has made of it."""
        return read_tryout_view(self.tryout) if self.tryout else None

    @property
    def is_stale(self) -> bool:
        """Whether the form says something else by now than what was tried."""
        then = _tried_run(self.tryout) if self.tryout else None
        return bool(then and self.spec) and _tried_parts(then) != _tried_parts(self.spec)

    def make_tryout(self, spec: RunSpec) -> TryoutSpec:
        """What a base model shall try."""
        return TryoutSpec(run=spec, records=tuple(spread(self.records, MOST_ROWS)))

    def refuse(self, refusal: LaunchRefused) -> None:
        """Show why the launch itself said no."""
        self.form.take_errors(refusal.errors)
        if not refusal.errors:
            self.refusal = refusal.message


def _tried_run(tryout: GlassStep) -> RunSpec | None:
    """The run that was thought of; None when today's contract cannot read it."""
    try:
        return tryout.read_tryout().run
    except ValueError:
        return None


def _preset_of(run: RunSpec) -> Preset | None:
    """The preset that trains the model of a run."""
    return next((each for each in PRESETS if each.spec.model == run.model), None)


def _tried_parts(run: RunSpec | None) -> tuple[Any, ...]:
    """What decides how a base model does."""
    if run is None:
        return ()
    sampling = [stage.sampling for stage in run.stages if stage.type == "rl"]
    return run.model, run.domains[0].system_prompt, run.reward, sampling
