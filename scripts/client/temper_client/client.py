"""`Temper`: everything that `/api/v1` does, as methods with types.

Methods raise `RefusedError` (its `errors` name the fields), `UnreachableError` after the patience
of the connection, and `TemperError` for what is wrong on this side.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from temper_client.config import Config, load_config
from temper_client.connection import UPLOAD_TIMEOUT, Connection, OnWait, given, say_nothing
from temper_client.errors import TemperError
from temper_client.fetching import Told, fetch_folder, hear_nothing
from temper_client.models import (
    Caller,
    Check,
    Checkpoint,
    CheckpointList,
    Dataset,
    DatasetPage,
    Export,
    ExportList,
    Import,
    LogPiece,
    Preset,
    PresetList,
    Run,
    RunPage,
)

DEEDS = ("stop", "pause", "resume", "evaluate", "checkpoint", "archive", "unarchive")
Spec = str | Mapping[str, Any]
"""A RunSpec: YAML text, or a document."""


class Temper:
    """A client of one server."""

    def __init__(
        self, url: str, token: str, *, patience_s: float = 60.0, on_wait: OnWait = say_nothing
    ) -> None:
        self.connection = Connection(Config(url, token), patience_s=patience_s, on_wait=on_wait)

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """From TEMPER_URL and TEMPER_TOKEN, else what `temper login` stored. Raises TemperError."""
        return cls(*load_config(), **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the sockets."""
        self.connection.close()

    def me(self) -> Caller:
        """Who the token acts for."""
        return self.connection.ask(Caller, "GET", "/me")

    def presets(self) -> list[Preset]:
        """All presets."""
        return self.connection.ask(PresetList, "GET", "/presets").items

    def preset(self, slug: str) -> Preset:
        """One preset."""
        return self.connection.ask(Preset, "GET", f"/presets/{slug}")

    def runs(self, *, most: int | None = None, **filters: Any) -> Iterator[Run]:
        """Runs, the newest first: filters are state, q, owner, preset, project, archived."""
        cursor, found = None, 0
        while most is None or found < most:
            query = given({**filters, "cursor": cursor, "limit": min(most or 200, 200)})
            page = self.connection.ask(RunPage, "GET", "/runs", params=query)
            for run in page.items[: None if most is None else most - found]:
                found += 1
                yield run
            cursor = page.next_cursor
            if cursor is None:
                return

    def run(self, number: int) -> Run:
        """A run as it is now."""
        return self.connection.ask(Run, "GET", f"/runs/{number}")

    def spec_yaml(self, number: int) -> str:
        """The spec of a run as YAML."""
        return self.connection.send("GET", f"/runs/{number}/spec.yaml").text

    def check(self, spec: Spec, *, project: str = "") -> Check:
        """What a launch of the spec would do; nothing is made."""
        body, query = _spec_body(spec), given({"project": project})
        return self.connection.ask(
            Check, "POST", "/specs/check", is_safe=True, params=query, **body
        )

    def launch(
        self,
        spec: Spec,
        *,
        preset: str = "",
        parent: int | None = None,
        project: str = "",
        key: str = "",
    ) -> Run:
        """Queue a run. A lost answer is asked for again under the same key, so it is one run."""
        body = _spec_body(spec)
        body["headers"] |= {"Idempotency-Key": key or uuid.uuid4().hex}
        query = given({"preset": preset, "parent": parent, "project": project})
        return self.connection.ask(Run, "POST", "/runs", is_safe=True, params=query, **body)

    def restart(
        self,
        number: int,
        checkpoint: str | int = "latest",
        spec: Spec | None = None,
        *,
        project: str = "",
        key: str = "",
    ) -> Run:
        """A new run that goes on from a checkpoint: `latest`, `best` or a step."""
        sent = spec if spec is None else _sent(spec)
        body = {"checkpoint": str(checkpoint), "spec": sent, "project": project}
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        path = f"/runs/{number}/restart"
        return self.connection.ask(Run, "POST", path, is_safe=True, json=body, headers=headers)

    def steer(self, number: int, deed: str) -> Run:
        """stop, pause, resume, evaluate, checkpoint, archive or unarchive."""
        if deed not in DEEDS:
            raise TemperError(f"A run has no command {deed}; there are {', '.join(DEEDS)}.")
        return self.connection.ask(Run, "POST", f"/runs/{number}/{deed}")

    def delete(self, number: int, name: str) -> None:
        """Delete a finished run for good; its name shows that you mean this one."""
        self.connection.send("DELETE", f"/runs/{number}", params={"name": name})

    def follow(self, number: int, every_s: float = 1.0) -> Iterator[Run]:
        """The run again and again until it has come to rest: ended or paused."""
        while True:
            run = self.run(number)
            yield run
            if run.is_terminal or run.state == "paused":
                return
            time.sleep(every_s)

    def log(self, number: int, attempt: int | None = None, offset: int = 0) -> LogPiece:
        """A piece of the console."""
        query = given({"attempt": attempt, "offset": offset})
        return self.connection.ask(LogPiece, "GET", f"/runs/{number}/logs", params=query)

    def checkpoints(self, number: int) -> list[Checkpoint]:
        """Checkpoints of a run, the newest first."""
        path = f"/runs/{number}/checkpoints"
        return self.connection.ask(CheckpointList, "GET", path).items

    def export(
        self,
        number: int,
        checkpoint: str | int = "latest",
        dtype: str = "float32",
        *,
        key: str = "",
    ) -> Export:
        """Have a checkpoint made into a model folder: `latest`, `best` or a step.

        dtype is float32 (bit for bit) or bfloat16 (half the size). One that stands is the answer.
        """
        body = {"checkpoint": str(checkpoint), "dtype": dtype}
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        path = f"/runs/{number}/exports"
        return self.connection.ask(Export, "POST", path, is_safe=True, json=body, headers=headers)

    def exports(self, number: int) -> list[Export]:
        """Exports of a run, the newest first."""
        return self.connection.ask(ExportList, "GET", f"/runs/{number}/exports").items

    def export_(self, export_id: uuid.UUID) -> Export:
        """An export as it is now."""
        return self.connection.ask(Export, "GET", f"/exports/{export_id}")

    def cancel_export(self, export_id: uuid.UUID) -> Export:
        """Have it not made."""
        return self.connection.ask(Export, "POST", f"/exports/{export_id}/cancel")

    def delete_export(self, export_id: uuid.UUID) -> None:
        """Remove its folder from the server."""
        self.connection.send("DELETE", f"/exports/{export_id}")

    def download(self, export: Export, folder: Path, told: Told = hear_nothing) -> None:
        """Write a ready export to a folder that is not there yet; it appears whole and checked.

        What was broken off goes on in FOLDER.partial. `told` hears how many bytes are here.
        """
        fetch_folder(self.connection, export, folder, told)

    def curves_csv(self, number: int, keys: Sequence[str], **options: Any) -> str:
        """Points of metrics as CSV; options are x, from, to, budget, smooth."""
        query = given({"key": list(keys), **options})
        return self.connection.send("GET", f"/runs/{number}/curves.csv", params=query).text

    def datasets(self, q: str = "", project: str = "") -> Iterator[Dataset]:
        """Datasets, the newest first."""
        cursor = None
        while True:
            query = given({"q": q, "project": project, "cursor": cursor})
            page = self.connection.ask(DatasetPage, "GET", "/datasets", params=query)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def upload(self, path: Path, **mapping: Any) -> Import:
        """Upload a file and import it.

        `mapping` may hold name, project, prompt, answer, demonstration, held_out_percent.
        """
        try:
            with path.open("rb") as file:
                return self.connection.ask(
                    Import,
                    "POST",
                    "/imports",
                    files={"file": (path.name, file)},
                    data={name: str(value) for name, value in given(mapping).items()},
                    timeout=UPLOAD_TIMEOUT,
                )
        except OSError as error:
            raise TemperError(f"{path} cannot be read: {error.strerror}.") from error

    def import_(self, import_id: uuid.UUID) -> Import:
        """An import as it is now."""
        return self.connection.ask(Import, "GET", f"/imports/{import_id}")


def _spec_body(spec: Spec) -> dict[str, Any]:
    """How a spec is sent: text as YAML, so that errors come back with its lines."""
    if isinstance(spec, str):
        return {"content": spec.encode(), "headers": {"Content-Type": "application/yaml"}}
    content = json.dumps(spec, allow_nan=False).encode()
    return {"content": content, "headers": {"Content-Type": "application/json"}}


def _sent(spec: Spec) -> Any:
    """A spec inside another document: text stays text, the server reads it."""
    return spec if isinstance(spec, str) else dict(spec)
