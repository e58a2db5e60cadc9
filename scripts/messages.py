"""Keep the catalogues of translated texts in step with the code: `make messages`.

Each text that the code marks (`gettext`, `{% translate %}`, `t` in scripts) stands in the catalogue
of its app, `webapp/APP/locale/zh_Hans/LC_MESSAGES/django.po`; texts of the scripts in `djangojs.po`
of `webapp/ui`. This adds new texts, drops those that are no more, keeps the translations, and
compiles. A text whose English changed loses its translation, since a near guess may say the
opposite; `tests/webapp/ui/test_messages.py` names what is missing.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from babel.messages.catalog import Catalog, Message  # noqa: E402 - the path is set above
from babel.messages.extract import extract  # noqa: E402
from babel.messages.mofile import write_mo  # noqa: E402
from babel.messages.pofile import read_po, write_po  # noqa: E402
from django.utils.translation.template import templatize  # noqa: E402

from training_core.contract.field_errors import message_of, models_of, sentences  # noqa: E402
from training_core.contract.metrics import METRICS  # noqa: E402
from training_core.contract.presets import PRESETS  # noqa: E402
from training_core.contract.spec import RunSpec  # noqa: E402
from webapp.ui.schema_form.build import label_of, summary_of  # noqa: E402

LANGUAGE = "zh_Hans"
HOME = "runs"
"""App that holds the texts of `training_core/contract`, which no app owns."""
APPS_OF_TEMPLATES = {
    "account": "accounts",
    "allauth": "accounts",
    "tokens": "api",
    "workers": "workers_page",
}
"""Folders of templates that are not named like their app."""
PYTHON = {
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "_": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
FAULTS = frozenset({"ValueError", "SpecFault"})
"""What validators of a spec raise; the words stand last."""
SCRIPTS = {"t": None, "tn": (1, 2), "tp": ((1, "c"), 2)}

Found = tuple[str, str, str | tuple[str, str], str | None]
"""Catalogue, file, text or its two numbers, context."""


def catalogues() -> dict[str, Catalog]:
    """Every catalogue as the code asks for it, empty of translations, by its path."""
    made: dict[str, Catalog] = {}
    for path, file, text, context in sorted(_found(), key=str):
        catalogue = made.setdefault(path, new_catalogue())
        catalogue.add(text, locations=[(file, 0)], context=context)
    return made


def new_catalogue() -> Catalog:
    """One without any text, with the same head each time."""
    return Catalog(
        locale=LANGUAGE,
        project="Temper",
        header_comment="# Texts in Chinese (simplified). `make messages` keeps it.",
        fuzzy=False,
    )


def _found() -> Iterator[Found]:
    """Every marked text."""
    for file in sorted((ROOT / "webapp").rglob("*.py")):
        yield from _in(file, file.read_text(), "python", PYTHON, place(_app_of(file)))
    for file in sorted([*(ROOT / "templates").rglob("*.html"), *_templates_of_apps()]):
        text = templatize(file.read_text(), origin=str(file))
        flat = re.sub(r"(?m)^[ \t]+", "", text)
        yield from _in(file, flat, "python", PYTHON, place(_app_of(file)))
    yield from _of_metrics()
    for file in sorted((ROOT / "static/js").rglob("*.js")):
        yield from _in(file, file.read_text(), "javascript", SCRIPTS, place("ui", "djangojs"))
    for text in _of_the_contract():
        yield place(HOME), "training_core/contract", text, None


def _of_the_contract() -> Iterator[str]:
    """What pages say of a spec: names and help of its fields, what can be wrong, presets."""
    yield from sentences()
    for preset in PRESETS:
        yield from (preset.title, preset.teaches, preset.expect)
    for model in models_of(RunSpec, set()):
        yield summary_of(model)
        for name, field in model.model_fields.items():
            yield from filter(None, (label_of(name), field.description))
    for file in sorted((ROOT / "training_core/contract").glob("*.py")):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in FAULTS:
                yield from (
                    message_of(word.value)
                    for word in call.args[-1:]
                    if isinstance(word, ast.Constant) and isinstance(word.value, str)
                )


def _templates_of_apps() -> Iterator[Path]:
    """Those that lie in an app's own folder."""
    return (ROOT / "webapp").glob("*/templates/**/*.html")


def _of_metrics() -> Iterator[Found]:
    """Meanings and units of the metrics: the contract has them, `webapp.metrics` translates."""
    texts = {metric.meaning for metric in METRICS} | {metric.unit for metric in METRICS}
    for text in texts - {"", "s", "bytes"}:
        yield place("metrics"), "training_core/contract/metrics.py", text, None


def _in(
    file: Path, text: str, kind: str, keywords: dict[str, object], catalogue: str
) -> Iterator[Found]:
    """The marked texts of one file."""
    where = file.relative_to(ROOT).as_posix()
    options = {"encoding": "utf-8"}
    for _, found, _, context in extract(kind, io.BytesIO(text.encode()), keywords, (), options):
        yield catalogue, where, found, context


def _app_of(file: Path) -> str:
    """The app whose catalogue holds a file's texts."""
    folder = file.relative_to(ROOT).parts[1]
    app = APPS_OF_TEMPLATES.get(folder, folder)
    return app if (ROOT / "webapp" / app / "apps.py").exists() else "ui"


def place(app: str, domain: str = "django") -> str:
    """Where an app's catalogue lies, below the root."""
    return f"webapp/{app}/locale/{LANGUAGE}/LC_MESSAGES/{domain}.po"


def read(path: Path) -> Catalog:
    """A catalogue as it stands."""
    with path.open("rb") as file:
        return read_po(file, locale=LANGUAGE)


def merged(asked: Catalog, kept: Catalog) -> Catalog:
    """What the code asks for, with the translations there are."""
    for message in asked:
        old: Message | None = kept.get(message.id, message.context) if message.id else None
        if old is not None:
            message.string = old.string
    return asked


def as_po(catalogue: Catalog) -> bytes:
    """The text of a catalogue, the same for the same texts."""
    head = re.compile(rb'^"(POT-Creation-Date|PO-Revision-Date|Generated-By|[A-Z][a-z]+-T[a-z]+'
                      rb'|Report-[A-Za-z-]+|Project-Id-Version): .*\n', re.MULTILINE)  # fmt: skip
    text = io.BytesIO()
    write_po(text, catalogue, width=96, sort_by_file=True, include_lineno=False)
    return head.sub(b"", text.getvalue())


def as_mo(catalogue: Catalog) -> bytes:
    """The compiled form that Django reads, the same for the same texts."""
    catalogue.project, catalogue.creation_date = "Temper", datetime(2000, 1, 1, tzinfo=UTC)
    text = io.BytesIO()
    write_mo(text, catalogue)
    return text.getvalue()


def main() -> None:
    """Bring every catalogue up to date and compile it."""
    asked = catalogues()
    for old in (ROOT / "webapp").rglob(f"locale/{LANGUAGE}/LC_MESSAGES/*.po"):
        if old.relative_to(ROOT).as_posix() not in asked:
            old.with_suffix(".mo").unlink(missing_ok=True)
            old.unlink()
    for name, catalogue in asked.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = merged(catalogue, read(path)) if path.exists() else catalogue
        path.write_bytes(as_po(whole))
        path.with_suffix(".mo").write_bytes(as_mo(whole))
        missing = sum(not all(strings(message)) for message in whole if message.id)
        print(f"{name}: {len(whole)} texts, {missing} not translated")


def strings(message: Message) -> tuple[str, ...]:
    """A message's translations: one, or one for each number."""
    found = message.string
    return tuple(found) if isinstance(found, list | tuple) else (found,)


if __name__ == "__main__":
    main()
