"""The launch page between two requests: which side is up, what it holds, what is wrong.

Called by the launch views; drawn by `templates/runs/launch/`. Everything is in the post, so that
the page survives a restart of the server and works without scripts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from django.utils.translation import gettext as _

from training_core.contract.field_errors import FieldError
from training_core.contract.spec import RunSpec
from training_core.contract.yaml_text import ParsedYaml
from webapp.accounts.models import Project, User
from webapp.runs.access import find_launch_project, launchable_projects
from webapp.runs.forecast import Forecast, Queue, forecast, queue_now
from webapp.runs.forms import (
    LaunchForm,
    ShownSection,
    YamlFault,
    at_lines,
    fits_the_form,
    read_yaml,
    sections_of,
)
from webapp.runs.origins import Origin, find_origin, new_key
from webapp.runs.preset_cards import Timing, timing_of
from webapp.runs.refusals import LaunchRefused
from webapp.runs.services import KEY_FORM
from webapp.runs.spec_diff import Change, diff_documents
from webapp.ui.schema_form.build import BuiltForm

PROJECT = "project"
"""Path of errors that concern no field of the spec but where the run is to belong."""
MODES = {"show:form": "form", "show:yaml": "yaml"}


@dataclass
class Editor:
    """What the launch page shows."""

    origin: Origin
    user: User
    """Who asks."""
    mode: Literal["form", "yaml"] = "form"
    key: str = field(default_factory=new_key)
    form: LaunchForm | None = None
    """The document; None while the YAML text is not YAML."""
    text: str = ""
    """The YAML text, when that side is up."""
    syntax_fault: str = ""
    """Why the text is not YAML."""
    refusal: str = ""
    """Why the launch was refused, when it is no field's fault."""
    extra_errors: list[FieldError] = field(default_factory=list)
    """Errors that only the launch itself found."""
    projects: list[Project] = field(default_factory=list)
    """Projects in which the person may launch."""
    project: Project | None = None
    """The one that the run will belong to."""
    is_guess: bool = False
    """Whether nothing speaks for that project more than for the others."""
    project_fault: str = ""
    """Why the project that the browser named is not the one."""
    shown: str = ""
    """Path of the part to bring into view."""
    was_submitted: bool = False
    posted: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the browser sent."""
    parsed: ParsedYaml | None = field(default=None, repr=False)
    """What the YAML text says and where, when it is YAML."""

    @classmethod
    def opening(
        cls,
        user: User,
        origin: Origin,
        chosen: Project | None = None,
        projects: list[Project] | None = None,
    ) -> Editor:
        """The page as it opens.

        `chosen` is the project that the person looks at; `projects` are those in which they may
        launch, where the caller has them already.
        """
        editor = cls(origin, user)
        editor._settle_project(projects, chosen)
        editor.form = LaunchForm(origin.document(), origin.document(), editor.project)
        return editor

    @classmethod
    def from_post(
        cls, user: User, posted: Mapping[str, str], projects: list[Project] | None = None
    ) -> Editor:
        """The page as a browser sent it."""
        origin = find_origin(user, posted)
        editor = cls(origin, user, key=posted.get("idempotency_key", ""), was_submitted=True)
        editor._settle_project(projects, named=posted.get("project", ""))
        base, project = origin.document(), editor.project
        if posted.get("mode") == "yaml":
            editor.mode, editor.text = "yaml", posted.get("yaml", "").replace("\r\n", "\n")
            editor.parsed, editor.syntax_fault = read_yaml(editor.text)
            if editor.parsed is not None:
                editor.form = LaunchForm(editor.parsed.document, base, project)
        else:
            editor.form = LaunchForm.from_post(posted, base, project)
        editor.posted = posted
        return editor

    def _settle_project(
        self,
        projects: list[Project] | None,
        chosen: Project | None = None,
        named: str = "",
    ) -> None:
        """Where the run will belong: as named, as what it starts from, as looked at, as usual."""
        self.projects = list(launchable_projects(self.user)) if projects is None else projects
        by_name = next((each for each in self.projects if each.slug == named), None)
        wishes = (by_name, self.origin.project, chosen)
        fitting = (each for each in wishes if each in self.projects)
        found = next(fitting, None) or find_launch_project(self.user, self.projects)
        self.project = found or next(iter(self.projects), None)
        self.is_guess = found is None
        if named and by_name is None:
            # Not to another audience without a word.
            self.project_fault = _(
                "You may not launch in the project that was chosen; the form says %(project)s "
                "now. Look at it and launch again."
            ) % {"project": self.project}

    def do(self, action: str) -> None:
        """Turn to the other side, or change the form's structure."""
        if action in MODES:
            self._turn_to(action)
        elif action != "check" and self.form is not None and self.mode == "form":
            if action.startswith("become:") and action.count(":") == 1:
                action = f"{action}:{self.posted.get(action, '')}"
            try:
                self.shown = self.form.change(action)
            except ValueError as error:
                words = _("The form could not be changed: %(reason)s.")
                self.refusal = words % {"reason": error}

    def _turn_to(self, action: str) -> None:
        """Show the other side; YAML that the controls could not show whole stays YAML."""
        if action == "show:yaml":
            if self.mode == "form" and self.form is not None:
                self.text = self.form.yaml()
                self.parsed = read_yaml(self.text)[0]
            self.mode = "yaml"
        elif self.form is not None and self.form.is_legible and fits_the_form(self.form.document):
            self.mode = "form"
        else:
            self.refusal = _("The form cannot show this text yet; mend what is listed below.")

    def launchable_spec(self) -> RunSpec | None:
        """The spec, when nothing is wrong with it."""
        if self.form is None or self.project_fault or not self.form.checked.is_launchable:
            return None
        return self.form.checked.spec

    def refuse(self, refusal: LaunchRefused) -> None:
        """Show why the launch itself said no."""
        self.extra_errors = refusal.errors
        if not KEY_FORM.fullmatch(self.key):
            self.key = new_key()
        if not refusal.errors:
            self.refusal = refusal.message

    @property
    def errors(self) -> list[FieldError]:
        """Everything that is wrong, at its path."""
        if self.form is None:
            return [FieldError("", self.syntax_fault)]
        project = [FieldError(PROJECT, self.project_fault)] if self.project_fault else []
        return [*project, *self.form.checked.errors, *self.extra_errors]

    @property
    def shows_project(self) -> bool:
        """Whether the page asks for the project, or says which it is."""
        is_elsewhere = self.origin.project not in (None, self.project)
        return len(self.projects) > 1 or bool(self.project_error) or is_elsewhere

    @property
    def faults(self) -> list[YamlFault]:
        """The same with the lines of the YAML text."""
        if self.form is None:
            return [YamlFault("", self.syntax_fault, None)]
        node = self.parsed.node if self.parsed is not None else None
        return at_lines(node, self.errors)

    @cached_property
    def built(self) -> BuiltForm | None:
        """The controls."""
        if self.form is None:
            return None
        return self.form.build([error for error in self.errors if error.path != PROJECT])

    @property
    def project_error(self) -> str:
        """What is wrong with the choice of the project; empty when nothing is."""
        return next((error.message for error in self.errors if error.path == PROJECT), "")

    @property
    def sections(self) -> list[ShownSection]:
        """The controls by section."""
        return sections_of(self.built) if self.built is not None else []

    @property
    def yaml(self) -> str:
        """The document as YAML."""
        if self.mode == "yaml" or self.form is None:
            return self.text
        return self.form.yaml()

    @property
    def whole_document(self) -> dict[str, Any]:
        """The document, with all defaults where it is valid; empty when there is none."""
        if self.form is None:
            return {}
        spec = self.form.checked.spec
        return self.form.document if spec is None else spec.model_dump(mode="json")

    @cached_property
    def forecast(self) -> Forecast | None:
        """What the run will do; None while the spec is not valid."""
        spec = self.form.checked.spec if self.form is not None else None
        return forecast(spec) if spec is not None else None

    @cached_property
    def timing(self) -> Timing | None:
        """How long it takes; known for presets as they stand."""
        preset = self.origin.as_preset
        return timing_of(self.user, preset) if preset is not None and not self.changes else None

    @cached_property
    def queue(self) -> Queue:
        """What it would meet."""
        return queue_now()

    @cached_property
    def changes(self) -> list[Change]:
        """Against the origin."""
        if self.form is None or self.form.base is None:
            return []
        spec = self.form.checked.spec
        document: Any = spec.model_dump(mode="json") if spec is not None else self.form.document
        return [c for c in diff_documents(self.form.base, document) if c.path != "name"]

    def focus_event(self) -> str:
        """The event that tells the page which part is new."""
        return json.dumps({"temper:show": {"path": self.shown}})
