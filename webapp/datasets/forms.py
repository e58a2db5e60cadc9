"""The mapping form: which column is what, checked against the file itself.

Called by the import view. The preview reads the first rows with the mapping that stands in the
form, so that a person sees real prompts before anything is queued.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from django.utils.translation import gettext as _

from training_core.contract.domains import DatasetRecord
from webapp.datasets.imports import upload_path
from webapp.datasets.layout import DELIMITERS, Layout, detect, read_rows
from webapp.datasets.mapping import Mapping, guess_by_texts, guess_mapping, make_record
from webapp.datasets.models import DatasetImport
from webapp.datasets.rows import FileError, Row, RowError, text_fault
from webapp.datasets.sentences import in_own_language

PREVIEWED = 5
LOOKED_AT = 20
"""Rows from which columns are guessed."""
LONGEST_NAME = 120
LOWEST_PERCENT, HIGHEST_PERCENT = 1, 50


@dataclass
class MappingForm:
    """What the mapping page shows."""

    job: DatasetImport
    mapping: Mapping
    name: str
    delimiter: str = ""
    layout: Layout | None = None
    file_error: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    """Field to what is wrong with it."""
    previews: list[DatasetRecord] = field(default_factory=list)
    row_errors: list[RowError] = field(default_factory=list)
    """What is wrong in the rows of the preview."""
    is_guess: bool = False
    reasons: dict[str, str] = field(default_factory=dict)
    """Field to why its column was guessed."""
    has_no_rows: bool = False
    """Whether the file is nothing but a header."""

    @classmethod
    def opening(cls, job: DatasetImport) -> MappingForm:
        """The form with a guess, or with what was chosen before."""
        known = {k: v for k, v in job.mapping.items() if k in Mapping._fields}
        form = cls(job, Mapping(**known) if known else Mapping("", ""), job.name or _stem(job))
        form.delimiter = str(job.mapping.get("delimiter", ""))
        form._look()
        if not known and form.layout is not None:
            form._guess(form.layout)
        form._preview()
        return form

    @classmethod
    def from_post(cls, job: DatasetImport, posted: MappingType[str, str]) -> MappingForm:
        """The form as it was sent, checked."""
        percent = posted.get("held_out_percent", "").strip()
        is_whole = percent.isascii() and percent.isdecimal() and len(percent) < 4
        mapping = Mapping(
            posted.get("prompt", ""),
            posted.get("answer", ""),
            posted.get("demonstration", ""),
            int(percent) if is_whole else 0,
        )
        form = cls(job, mapping, posted.get("name", "").strip())
        form.delimiter = posted.get("delimiter", "")
        form._look()
        form._check(is_whole)
        if form.layout is not None and not form.errors:
            form._preview()
        return form

    @property
    def is_valid(self) -> bool:
        """Whether it may be queued."""
        return not self.errors and not self.file_error

    @property
    def columns(self) -> list[str]:
        """Columns of the file."""
        return self.layout.columns if self.layout else []

    @property
    def delimiters(self) -> dict[str, str]:
        """Delimiters that can be chosen."""
        return {sign: _(word) for sign, word in DELIMITERS.items()}

    def _look(self) -> None:
        """Find out what the file is."""
        if self.delimiter not in DELIMITERS:
            self.delimiter = ""
        try:
            self.layout = detect(self.path, self.job.file_name, self.delimiter)
        except FileError as error:
            self.file_error = in_own_language(error.message)
        except OSError:
            self.file_error = _("The uploaded file is gone; upload it again.")

    def _guess(self, layout: Layout) -> None:
        """Choose columns by their names, else by the texts of the first rows, and say why."""
        named = guess_mapping(layout.columns)
        read = islice(read_rows(self.path, layout), LOOKED_AT)
        rows = [row for row in read if isinstance(row, Row)]
        self.mapping, self.is_guess = guess_by_texts(named, layout.columns, rows), True
        by_name = {
            "prompt": _("Proposed: “%(column)s” is a name that prompts have."),
            "answer": _("Proposed: “%(column)s” is a name that answers have."),
        }
        by_size = {
            "prompt": _("Proposed: its texts are the longest of the first rows."),
            "answer": _("Proposed: its texts are the shortest of the first rows."),
        }
        for role, text in by_name.items():
            column = getattr(self.mapping, role)
            if column and column == getattr(named, role):
                self.reasons[role] = text % {"column": column}
            elif column:
                self.reasons[role] = by_size[role]

    @property
    def path(self) -> Path:
        """The uploaded file."""
        return upload_path(self.job)

    def _check(self, percent_is_whole: bool) -> None:
        """What is wrong with the choices."""
        if not self.name:
            self.errors["name"] = _("Give the dataset a name.")
        elif len(self.name) > LONGEST_NAME:
            self.errors["name"] = _("At most %(most)s characters.") % {"most": LONGEST_NAME}
        elif fault := text_fault(self.name):
            self.errors["name"] = in_own_language(fault[1])
        if self.mapping.prompt not in self.columns:
            self.errors["prompt"] = _("Choose the column that holds the prompt.")
        if self.mapping.answer not in self.columns:
            self.errors["answer"] = _("Choose the column that holds the answer.")
        if self.mapping.demonstration and self.mapping.demonstration not in self.columns:
            self.errors["demonstration"] = _("Choose a column of the file, or none.")
        if self.mapping.prompt and self.mapping.prompt == self.mapping.answer:
            self.errors["answer"] = _("Prompt and answer cannot be the same column.")
        percent = self.mapping.held_out_percent
        if not percent_is_whole or not LOWEST_PERCENT <= percent <= HIGHEST_PERCENT:
            text = _("A whole number from %(least)s to %(most)s.")
            bounds = {"least": LOWEST_PERCENT, "most": HIGHEST_PERCENT}
            self.errors["held_out_percent"] = text % bounds

    def _preview(self) -> None:
        """Read the first rows under the mapping."""
        if self.layout is None or not (self.mapping.prompt and self.mapping.answer):
            return
        items = list(islice(read_rows(self.path, self.layout), PREVIEWED))
        self.has_no_rows = not items
        for item in items:
            made = [item] if isinstance(item, RowError) else make_record(item, self.mapping)
            if isinstance(made, DatasetRecord):
                self.previews.append(made)
            else:
                self.row_errors.extend(_for_reader(error.shortened()) for error in made)


def _for_reader(error: RowError) -> RowError:
    """The error in the language of who looks at the form."""
    return error._replace(message=in_own_language(error.message))


def _stem(job: DatasetImport) -> str:
    """A name from the file's name."""
    return Path(job.file_name).stem.replace("_", " ").strip()[:LONGEST_NAME]
