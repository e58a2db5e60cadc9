"""The client by itself: its models against the server's document, its words, its configuration."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from temper_client import words
from temper_client.arguments import parser
from temper_client.command import COMMANDS
from temper_client.config import Config, config_path, load_config, save_config
from temper_client.errors import TemperError
from temper_client.models import MODEL_OF_SCHEMA, Number, Run

from tests.architecture.sources import ROOT
from webapp.api.examples import EXAMPLES, RUN
from webapp.api.openapi import operations
from webapp.api.site import api

DOCUMENT: dict[str, Any] = dict(api.get_openapi_schema(path_prefix="/api/v1/"))
SCHEMAS = DOCUMENT["components"]["schemas"]
LEFT_TO_THE_SERVER = {("ImportOut", "columns"), ("ProblemDocument", "type")}


@pytest.mark.parametrize("name", MODEL_OF_SCHEMA)
def test_every_model_has_the_fields_of_its_schema(name: str) -> None:
    model = MODEL_OF_SCHEMA[name]
    fields = {(name, field) for field in SCHEMAS[name]["properties"]}
    assert fields - LEFT_TO_THE_SERVER == {(name, field) for field in model.model_fields}


def test_every_answer_that_the_client_reads_can_be_read() -> None:
    read = 0
    for operation in operations(DOCUMENT):
        for status, answer in operation["responses"].items():
            schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
            name = schema.get("$ref", "").rpartition("/")[2]
            if str(status).startswith("2") and name in MODEL_OF_SCHEMA:
                example = EXAMPLES[operation["operationId"]].answered
                MODEL_OF_SCHEMA[name].model_validate(example)
                read += 1
    assert read > 15


def test_numbers_that_are_not_finite_are_floats() -> None:
    run = Run.model_validate({**RUN, "latest": {"a": "nan", "b": "-inf", "c": "words", "d": 1}})
    assert math.isnan(float(run.latest["a"]))
    assert run.latest["b"] == -math.inf
    assert run.latest["c"] == "words"
    assert Number is not float


def test_a_newer_server_may_say_more() -> None:
    assert Run.model_validate({**RUN, "mood": "good"}).number == 12


def test_a_terminal_gets_no_sequences_from_names_and_logs() -> None:
    assert words.plain("a\x1b[2Jb\x1b]0;title\x07c\nd\u202e") == "abc d"
    text = "\x1b[31mred\x1b[0m\x1b[2J\x1b]52;c;aGk=\x07 1\r2\x00\n"
    assert words.log_text(text, colours=True) == "\x1b[31mred\x1b[0m 1\n2\n"
    assert words.log_text(text, colours=False) == "red 1\n2\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (math.nan, "NaN"),
        (-math.inf, "-∞"),
        (0.123456, "0.1235"),
        (2.5e9, "2,500,000,000"),
    ],
)
def test_numbers_in_words(value: float | None, expected: str) -> None:
    assert words.number(value) == expected


def test_durations_and_sizes() -> None:
    assert [words.duration(s) for s in (0.4, 61, 3840, None)] == [
        "0 s",
        "1 min 01 s",
        "1 h 04 min",
        "–",
    ]
    assert [words.size(n) for n in (10, 12_600_000)] == ["10 B", "12.6 MB"]


def test_the_token_is_stored_for_its_owner_alone(tmp_path: Path) -> None:
    here = {"XDG_CONFIG_HOME": str(tmp_path)}
    path = save_config(Config("http://a:1", "temper_x"), here)
    assert path == config_path(here)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_config(here) == Config("http://a:1", "temper_x")
    path.chmod(0o644)
    with pytest.raises(TemperError, match="chmod 600"):
        load_config(here)


def test_a_stored_token_goes_to_no_other_server(tmp_path: Path) -> None:
    here = {"XDG_CONFIG_HOME": str(tmp_path)}
    save_config(Config("http://a:1", "temper_x"), here)
    with pytest.raises(TemperError, match="http://a:1"):
        load_config({**here, "TEMPER_URL": "http://b:1"})
    both = {**here, "TEMPER_URL": "http://b:1/", "TEMPER_TOKEN": "temper_y"}
    assert load_config(both) == Config("http://b:1", "temper_y")
    with pytest.raises(TemperError, match="temper login"):
        load_config({"XDG_CONFIG_HOME": str(tmp_path / "none")})
    config_path(here).write_text(json.dumps({"url": "b"}))
    with pytest.raises(TemperError, match=r"login\.json"):
        load_config(here)


def test_every_command_does_something_and_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--help"])
    named = set(re.findall(r"^    ([a-z]+)(?: +[a-z]|$)", capsys.readouterr().out, re.MULTILINE))
    assert named == {*COMMANDS, "login"}
    manual = (ROOT / "docs/api.md").read_text()
    assert [name for name in named if f"`temper {name}" not in manual] == []


@pytest.mark.parametrize("text", ["x", "0", "-1", "1.5", "#", "99999999999999"])
def test_what_is_no_run_is_a_wrong_argument(text: str) -> None:
    with pytest.raises(SystemExit) as ending:
        parser().parse_args(["watch", text])
    assert ending.value.code == 2
