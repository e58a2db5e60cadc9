"""Where the server is and with which token: the environment, else a file that only you can read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from temper_client.errors import TemperError

URL_VARIABLE = "TEMPER_URL"
TOKEN_VARIABLE = "TEMPER_TOKEN"
HOW = f"Run `temper login URL`, or set {URL_VARIABLE} and {TOKEN_VARIABLE}."


class Config(NamedTuple):
    """How to reach the server."""

    url: str
    """Its address without `/api/v1`."""
    token: str


def config_path(environment: Mapping[str, str] = os.environ) -> Path:
    """The file that `temper login` writes."""
    base = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "temper" / "login.json"


def load_config(environment: Mapping[str, str] = os.environ) -> Config:
    """From the environment where it is set, else from the file. Raises TemperError.

    A token from the file goes only to the server that it was made for: with TEMPER_URL set to
    another one, TEMPER_TOKEN has to be set too.
    """
    url, token = environment.get(URL_VARIABLE, ""), environment.get(TOKEN_VARIABLE, "")
    if url and token:
        return Config(clean_url(url), token)
    stored = _read(config_path(environment))
    if stored is None:
        raise TemperError(f"No server and token are known. {HOW}")
    if url and clean_url(url) != stored.url:
        raise TemperError(f"The stored token is for {stored.url}, not {url}. {HOW}")
    return Config(stored.url, token or stored.token)


def save_config(config: Config, environment: Mapping[str, str] = os.environ) -> Path:
    """Write the file, readable by its owner alone. Raises TemperError."""
    path = config_path(environment)
    aside = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(config._asdict(), file)
        aside.replace(path)
    except OSError as error:
        raise TemperError(f"{path} cannot be written: {error.strerror}.") from error
    return path


def clean_url(url: str) -> str:
    """The address without a path of ours. Raises TemperError for what is none."""
    url = url.strip().rstrip("/").removesuffix("/api/v1")
    if not url.startswith(("http://", "https://")):
        raise TemperError(f"{url!r} is no address; write it as http://host:port.")
    return url


def _read(path: Path) -> Config | None:
    """What the file holds, or None without one. Raises TemperError for one that others can read."""
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise TemperError(f"Others can read {path}; run `chmod 600 {path}`, then try again.")
        text = path.read_text()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TemperError(f"{path} cannot be used ({error}); run `temper login URL`.") from error
    try:
        document = json.loads(text)
        return Config(clean_url(str(document["url"])), str(document["token"]))
    except (TemperError, ValueError, KeyError, TypeError) as error:
        raise TemperError(f"{path} cannot be used ({error}); run `temper login URL`.") from error
