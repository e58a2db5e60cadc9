"""The dataset domain: prompts from the run's frozen copy of an uploaded dataset version.

Opened and checked through `training_core.domains.sources`. The copy (`datasets/ID.jsonl`) is read
whole and its hash compared. Training goes through its records in shuffled epochs: each one once in
each epoch, and the order a function of (seed, index) alone. A training record with the very prompt
of a held-out one is left out.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

from pydantic import ValidationError

from training_core.contract.domains import DatasetDomain, DatasetRecord, Message
from training_core.contract.field_errors import FieldError
from training_core.contract.rundir import RunDir
from training_core.domains.item import PromptItem
from training_core.domains.templates import fill
from training_core.failures import BadData


class DatasetSource:
    """An opened dataset version. Implements `domains.item.DomainSource`."""

    def __init__(self, spec: DatasetDomain, records: Sequence[DatasetRecord], seed: int) -> None:
        self._spec = spec
        self._train, self._held_out = split_sides(records)
        self._by_id = {record.record_id: record for record in records}
        self._seed = seed
        self._epoch: tuple[int, list[int]] = (-1, [])

    def prompt(self, index: int) -> PromptItem:
        """The index-th training prompt; epoch e holds indices e * n to (e + 1) * n - 1."""
        epoch, place = divmod(index, len(self._train))
        return self._item(self._train[self._order(epoch)[place]])

    def held_out(self) -> list[PromptItem]:
        """At most `held_out_items` held-out records, the same for every seed."""
        ranked = sorted(self._held_out, key=lambda record: _rank("held out", record.record_id))
        return [self._item(record) for record in ranked[: self._spec.held_out_items]]

    def demonstration(self, item: PromptItem) -> str:
        """The record's own demonstration, else the domain's template."""
        return make_demonstration(self._spec, self._by_id[item.prompt_id])

    def _order(self, epoch: int) -> list[int]:
        """The shuffle of one epoch; the last one used is kept."""
        if self._epoch[0] != epoch:
            order = list(range(len(self._train)))
            random.Random(_rank(f"{self._seed}|{self._spec.name}", str(epoch))).shuffle(order)
            self._epoch = (epoch, order)
        return self._epoch[1]

    def _item(self, record: DatasetRecord) -> PromptItem:
        """A record as a prompt."""
        return make_item(self._spec, record)


def make_item(spec: DatasetDomain, record: DatasetRecord) -> PromptItem:
    """A record as a prompt; the domain's system turn is put before one that has none."""
    messages = record.messages
    if spec.system_prompt and messages[0].role != "system":
        messages = (Message(role="system", content=spec.system_prompt), *messages)
    return PromptItem(
        prompt_id=record.record_id,
        domain=spec.name,
        messages=messages,
        question=record.messages[-1].content,
        answer=record.answer,
        metadata={"dataset_version": spec.dataset_version},
    )


def make_demonstration(spec: DatasetDomain, record: DatasetRecord) -> str:
    """The reply that sft stages imitate: the record's own, else the domain's template."""
    if record.demonstration is not None:
        return record.demonstration
    return fill_template(spec, record)


def fill_template(spec: DatasetDomain, record: DatasetRecord) -> str:
    """The domain's reply with the right answer of a record."""
    question = record.messages[-1].content
    return fill(spec.demonstration_template, question=question, answer=record.answer)


def open_domain(spec: DatasetDomain, run_dir: RunDir, seed: int) -> DatasetSource:
    """Read the run's copy and check it. Raises BadData with a sentence and an advice."""
    records, file_hash = read_records(spec, run_dir)
    if spec.content_hash and file_hash != spec.content_hash:
        raise BadData(
            f"Domain {spec.name}: the records of dataset version {spec.dataset_version} are not"
            " those that the run was launched with (their hash differs).",
            "Launch the run again; the copy in the run directory was changed or damaged.",
        )
    train, held_out = split_sides(records)
    for side, found, enough in (("training", train, 1), ("held-out", held_out, 2)):
        if len(found) < enough:
            raise BadData(
                f"Domain {spec.name}: the dataset version has {len(found)} {side} records that can"
                f" be used; at least {enough} are needed.",
                "Import the dataset again with a split that has both sides.",
            )
    return DatasetSource(spec, records, seed)


def split_sides(
    records: Sequence[DatasetRecord],
) -> tuple[list[DatasetRecord], list[DatasetRecord]]:
    """Training and held-out records; no prompt is on both sides."""
    held_out = [record for record in records if record.split == "held_out"]
    reserved = {record.messages for record in held_out}
    train = [r for r in records if r.split == "train" and r.messages not in reserved]
    return train, held_out


def read_records(spec: DatasetDomain, run_dir: RunDir) -> tuple[list[DatasetRecord], str]:
    """All records of the run's copy and the SHA-256 of its bytes. Raises BadData with the line."""
    path = run_dir.dataset_file(spec.dataset_version)
    digest = hashlib.sha256()
    records: list[DatasetRecord] = []
    seen: set[str] = set()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                digest.update(line)
                record = DatasetRecord.model_validate_json(line)
                if record.record_id in seen:
                    raise BadData(f"{path.name}, line {number}: record twice.", _AGAIN)
                seen.add(record.record_id)
                records.append(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        message = f"{path.name}, line {len(records) + 1}: {where}: {first['msg']}."
        raise BadData(message, _AGAIN) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BadData(f"{path.name} cannot be read: {reason}.", _AGAIN) from error
    return records, digest.hexdigest()


_AGAIN = "Launch the run again, so that its copy of the dataset is written afresh."


def validate_domain(spec: DatasetDomain) -> list[FieldError]:
    """Nothing to find without the database: the launch checks that the version exists."""
    del spec
    return []


def _rank(salt: str, name: str) -> int:
    """A stable pseudo-random number for a name."""
    return int.from_bytes(hashlib.blake2b(f"{salt}|{name}".encode(), digest_size=8).digest(), "big")
