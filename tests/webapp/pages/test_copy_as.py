"""Copy as YAML, command and Python: each text, executed, gives the spec that the form holds."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from django.test import Client

from tests.webapp.browser_form import submitted
from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.stories import Story, launch
from training_core.contract.presets import TEACH_SMOLLM2_TO_ADD, TINY_COPY
from training_core.contract.spec import RunSpec
from training_core.contract.yaml_text import parse_yaml
from webapp.accounts.models import Project, User
from webapp.runs.copy_as import copy_texts
from webapp.runs.origins import Origin

SPECS = [TINY_COPY.spec, TEACH_SMOLLM2_TO_ADD.spec] + [
    TINY_COPY.spec.model_copy(update={"name": name, "notes": f"{name}\nSPEC\n{name}"})
    for name in NAMES
]


class Recorder:
    """Stands where `temper_client.client.Temper` would, and remembers."""

    calls: list[tuple[str, Any]] = []
    number = 1

    @classmethod
    def from_environment(cls) -> Recorder:
        return cls()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None: ...

    def launch(self, spec: Any, **where: Any) -> Recorder:
        self.calls.append(("launch", (spec, where)))
        return self

    def restart(self, *values: Any, **where: Any) -> Recorder:
        self.calls.append(("restart", (*values, where)))
        return self


def run_python(text: str) -> tuple[str, Any]:
    Recorder.calls = []
    code = text.replace("from temper_client.client import Temper\n", "")
    exec(compile(code, "copied", "exec"), {"Temper": Recorder})
    [call] = Recorder.calls
    return call


def run_shell(text: str) -> tuple[list[str], str]:
    """(arguments of temper, its standard input), as a shell hands them over."""
    script = 'temper() { printf "%s\\n" "$*"; cat; }\n' + text
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    line, _, rest = done.stdout.partition("\n")
    return line.split(), rest


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: ascii(spec.name)[:20])
def test_each_text_gives_the_same_spec(spec: RunSpec) -> None:
    texts = copy_texts(Origin(preset=TINY_COPY), spec.model_dump(mode="json"))
    assert RunSpec.model_validate(parse_yaml(texts.yaml)) == spec
    arguments, sent = run_shell(texts.command)
    assert arguments == ["launch", "-", "--preset", "tiny-model", "--watch"]
    assert RunSpec.model_validate(parse_yaml(sent)) == spec
    name, (document, where) = run_python(texts.python)
    assert (name, where) == ("launch", {"preset": "tiny-model"})
    assert RunSpec.model_validate(document) == spec


def test_the_project_goes_along(ada: User) -> None:
    project = Project(slug="second", name="Second")
    texts = copy_texts(Origin(), TINY_COPY.spec.model_dump(mode="json"), project)
    assert run_shell(texts.command)[0] == ["launch", "-", "--project", "second", "--watch"]
    assert run_python(texts.python)[1][1] == {"project": "second"}


def test_a_restart_stays_one(ada: User) -> None:
    story = Story(launch(ada)).start().step(61).checkpoint(61)
    origin = Origin(checkpoint=story.run.checkpoints.get())
    texts = copy_texts(origin, story.run.spec, story.run.project)
    arguments, _ = run_shell(texts.command)
    assert arguments[:4] == ["restart", str(story.run.number), "--checkpoint", "61"]
    where = {"project": "main"}
    assert run_python(texts.python) == ("restart", (story.run.number, 61, story.run.spec, where))


def test_the_dialog_holds_what_stands_in_the_form(browser: Client) -> None:
    form = submitted(browser.get("/runs/new/?preset=tiny-model").content.decode())
    form |= {"name": "<img src=x onerror=alert(1)>", "seed": "7"}
    page = browser.post("/runs/new/copy/", form)
    assert "<h1>Copy this run</h1>" in page.content.decode()
    html = browser.post("/runs/new/copy/", form, headers={"HX-Request": "true"}).content.decode()
    assert "<h1" not in html
    assert "seed: 7" in html
    assert not any(markup in html for markup in RAW_MARKUP)


def test_faults_are_said_and_copied(browser: Client) -> None:
    form = submitted(browser.get("/runs/new/?preset=tiny-model").content.decode())
    html = browser.post("/runs/new/copy/", {**form, "seed": "many"}).content.decode()
    assert "1 to mend before this launches" in html
    assert "seed: many" in html
    torn = {"mode": "yaml", "yaml": "name: ["}
    assert "ine 1" in browser.post("/runs/new/copy/", torn).content.decode()
