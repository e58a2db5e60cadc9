"""What stands in the launch form as YAML, as a command and as Python, ready to paste elsewhere.

Called by the launch views. Command and Python are those of `temper-client`; each text launches
exactly the document that the form holds, faults included, and the server judges it again.
"""

from __future__ import annotations

import pprint
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training_core.contract.yaml_text import dump_yaml
from webapp.accounts.models import Project
from webapp.runs.origins import Origin

MARK = "SPEC"


@dataclass(frozen=True)
class CopyTexts:
    """The three texts."""

    yaml: str
    command: str
    """For a POSIX shell."""
    python: str


def copy_texts(
    origin: Origin, document: Mapping[str, Any], project: Project | None = None
) -> CopyTexts:
    """All three for a document that came from somewhere and is to run in a project."""
    text = dump_yaml(dict(document))
    slug = project.slug if project is not None else ""
    return CopyTexts(text, _command(origin, text, slug), _python(origin, document, slug))


def _command(origin: Origin, text: str, slug: str) -> str:
    """The YAML as a here-document, whose mark no line of it is."""
    mark = MARK
    while mark in text.splitlines():
        mark += "_"
    if origin.checkpoint is not None:
        run = origin.checkpoint.run.number
        words = [f"temper restart {run} --checkpoint {origin.checkpoint.step} --spec -"]
    else:
        words = ["temper launch -", *_flags(origin)]
    words += [f"--project {slug}"] if slug else []
    return f"{' '.join(words)} --watch <<'{mark}'\n{text}{mark}\n"


def _flags(origin: Origin) -> list[str]:
    """Where the document came from."""
    if origin.parent is not None:
        return [f"--parent {origin.parent.number}"]
    return [f"--preset {origin.preset.slug}"] if origin.preset is not None else []


def _python(origin: Origin, document: Mapping[str, Any], slug: str) -> str:
    """A script that launches it."""
    spec = pprint.pformat(dict(document), sort_dicts=False, width=96)
    if origin.checkpoint is not None:
        run, step = origin.checkpoint.run.number, origin.checkpoint.step
        name, values = "restart", [str(run), str(step), "spec"]
    else:
        name, values = "launch", ["spec"]
        if origin.parent is not None:
            values.append(f"parent={origin.parent.number}")
        elif origin.preset is not None:
            values.append(f"preset={origin.preset.slug!r}")
    values += [f"project={slug!r}"] if slug else []
    call = f"temper.{name}({', '.join(values)})"
    return (
        "from temper_client.client import Temper\n\n"
        f"spec = {spec}\n\n"
        "with Temper.from_environment() as temper:\n"
        f"    run = {call}\n"
        '    print(f"#{run.number} is queued")\n'
    )
