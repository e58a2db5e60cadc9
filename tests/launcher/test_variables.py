"""A wrong environment is told before anything starts, in words that say what is allowed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, python_files
from webapp.launcher.addresses import public_url
from webapp.launcher.errors import LauncherError
from webapp.launcher.variables import (
    BY_NAME,
    FILE_SUFFIX,
    VARIABLES,
    check_environment,
    read_variable,
)

PAGE = (ROOT / "docs" / "operations.md").read_text()
OURS = re.compile(r"""["'](TEMPER_[A-Z_]*[A-Z])["']""")
TOKEN = "a-token-that-nobody-can-guess"


def complaint(**environment: str) -> str:
    with pytest.raises(LauncherError) as caught:
        check_environment(environment)
    return str(caught.value)


def test_every_variable_stands_in_the_table_and_no_other() -> None:
    offered = [each for each in VARIABLES if each.kind != "internal"]
    lines = [f"| `{each.name}` | {each.meaning} | {each.default} |" for each in offered]
    assert [line for line in lines if line not in PAGE.splitlines()] == []
    table = re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE)
    assert table == [each.name for each in offered]


def test_every_secret_may_come_from_a_file_and_the_page_says_so() -> None:
    secrets = [each.name for each in VARIABLES if each.kind == "secret"]
    assert len(secrets) >= 4
    assert [name for name in secrets if f"`{name}{FILE_SUFFIX}`" not in PAGE] == []


def test_every_variable_that_the_code_names_is_known() -> None:
    files = python_files("webapp", "workers", "training_core", "scripts", "benchmarks")
    named = {name for path in files for name in OURS.findall(path.read_text())}
    assert len(named) > 10
    assert sorted(named - set(BY_NAME)) == []


def test_nothing_set_is_fine() -> None:
    check_environment({})
    check_environment(dict.fromkeys(BY_NAME, ""))
    check_environment({"TEMPER_TEST_HOME_GW0": "/tmp/x", "PATH": "/bin"})


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("TEMPER_ALOWED_HOSTS", "TEMPER_ALLOWED_HOSTS"),
        ("TEMPER_DATADIR", "TEMPER_DATA_DIR"),
        ("TEMPER_WORKERS_QUEUE", "TEMPER_WORKER_QUEUES"),
        ("TEMPER_METRICS_TOKEN_FIL", "TEMPER_METRICS_TOKEN"),
    ],
)
def test_a_misspelt_name(name: str, nearest: str) -> None:
    assert f"{name} is no variable of Temper: did you mean {nearest}?" in complaint(**{name: "x"})


def test_a_name_like_none_of_ours() -> None:
    assert "docs/operations.md lists all" in complaint(TEMPER_XQZ="x")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("TEMPER_TLS", "maybe", "must be true or false, not 'maybe'"),
        ("TEMPER_PORT", "80a", "no port number"),
        ("TEMPER_PORT", "65536", "no port number"),
        ("TEMPER_UMASK", "777", "leave its owner everything"),
        ("TEMPER_LOG_LEVEL", "LOUD", "DEBUG or INFO"),
        ("TEMPER_LOG_FORMAT", "xml", "must be text or json"),
        ("TEMPER_HSTS", "all", "host or subdomains or preload"),
        ("TEMPER_ALLOWED_HOSTS", "https://temper.example", "without https://"),
        ("TEMPER_ALLOWED_HOSTS", "temper.example:8000", "without a port"),
        ("TEMPER_ALLOWED_HOSTS", ",", "at least one host"),
        ("TEMPER_TRUSTED_ORIGINS", "temper.example", "such as https://temper.example"),
        ("TEMPER_TRUSTED_PROXIES", "proxy.example", "no address or network"),
        ("TEMPER_TRUSTED_PROXIES", "*", "no address or network"),
        ("TEMPER_WORKER_QUEUES", "train,gpu", "'gpu', to which nothing is sent: use train, cpu"),
        ("DATABASE_URL", "mysql://db/x", "needs PostgreSQL"),
        ("DATABASE_URL", "postgresql://ann:a/b@db:5432/x", "password"),
        ("REDIS_URL", "http://cache", "must be redis://"),
        ("SECRET_KEY", "short", "at least 50 characters"),
        ("TEMPER_METRICS_TOKEN", "short", "at least 24 characters"),
        ("TEMPER_METRICS_TOKEN", f"{TOKEN} {TOKEN}", "without spaces"),
    ],
)
def test_a_wrong_value(name: str, value: str, words: str) -> None:
    told = complaint(**{name: value})
    assert f"  {name} " in told
    assert words in told
    if BY_NAME[name].kind == "secret":
        assert value not in told, "a secret is not repeated"


@pytest.mark.parametrize(
    "environment",
    [
        {"TEMPER_TLS": "true", "TEMPER_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8"},
        {"TEMPER_ALLOWED_HOSTS": "temper.example,.lab.example,10.0.0.5,[::1],*"},
        {"TEMPER_WORKER_QUEUES": ""},
        {"TEMPER_WORKER_QUEUES": " cpu , train "},
        {"DATABASE_URL": "postgres://ann:a%2Fb@db:5432/x", "REDIS_URL": "rediss://:x@c:6380/0"},
        {"TEMPER_DEBUG": "1", "TEMPER_HOST": "127.0.0.1"},
    ],
)
def test_what_is_right(environment: dict[str, str]) -> None:
    check_environment(environment)


def test_variables_that_contradict_each_other() -> None:
    assert "TEMPER_TRUSTED_PROXIES is empty" in complaint(TEMPER_TLS="yes")
    assert "lets other machines in" in complaint(TEMPER_DEBUG="true", TEMPER_HOST="0.0.0.0")


def test_all_that_is_wrong_is_told_at_once() -> None:
    told = complaint(TEMPER_PORT="x", TEMPER_TLS="y", TEMPER_HOTS="z")
    assert len(told.splitlines()) == 4


def test_a_secret_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    named = {"TEMPER_METRICS_TOKEN_FILE": str(file)}
    check_environment(named)
    assert read_variable("TEMPER_METRICS_TOKEN", named) == TOKEN
    assert "are both set" in complaint(**named, TEMPER_METRICS_TOKEN=TOKEN)
    file.write_text("short")
    assert "at least 24 characters" in complaint(**named)
    file.write_text("\n")
    assert "which is empty" in complaint(**named)
    file.unlink()
    assert "cannot be read: No such file" in complaint(**named)


def test_only_secrets_have_files() -> None:
    assert "TEMPER_PORT_FILE is no variable" in complaint(TEMPER_PORT_FILE="/x")


def test_a_command_ends_with_the_sentence_and_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "check"],
        env={**os.environ, "TEMPER_TLS": "perhaps", "TEMPER_HOSTT": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Error: The environment is not right.\n" in done.stderr
    assert "TEMPER_HOSTT is no variable of Temper: did you mean TEMPER_HOST?" in done.stderr
    assert "TEMPER_TLS must be true or false" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("hosts", "origins", "url"),
    [
        ("temper.example", "", "https://temper.example"),
        ("localhost,.lab.example,temper.example", "", "https://temper.example"),
        ("temper.example", "https://*.example,https://a.example:8443", "https://a.example:8443"),
        ("*", "", "http://127.0.0.1:8000"),
    ],
)
def test_links_lead_through_the_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hosts: str, origins: str, url: str
) -> None:
    monkeypatch.delenv("TEMPER_PORT", raising=False)
    monkeypatch.setenv("TEMPER_ALLOWED_HOSTS", hosts)
    monkeypatch.setenv("TEMPER_TRUSTED_ORIGINS", origins)
    assert public_url(tmp_path) == "http://127.0.0.1:8000"
    monkeypatch.setenv("TEMPER_TLS", "true")
    assert public_url(tmp_path) == url
