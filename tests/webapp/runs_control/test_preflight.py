from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from training_core.contract.domains import DatasetDomain, ReasoningGymDomain
from training_core.contract.spec import CheckpointSpec, ModelSpec, RunSpec
from training_core.models.tiny import build_tiny_model
from webapp.accounts.models import User
from webapp.datasets.models import Dataset, DatasetRecord, DatasetVersion
from webapp.runs import disk
from webapp.runs.access import can_control, get_controllable_run_for_user, get_run_for_user
from webapp.runs.models import Run
from webapp.runs.preflight import check, fill_content_hashes


@pytest.fixture
def version(alice: User) -> DatasetVersion:
    dataset = Dataset.objects.create(name="sums", owner=alice)
    return DatasetVersion.objects.create(
        dataset=dataset,
        number=1,
        content_hash="abc",
        record_count=10,
        held_out_count=4,
        state=DatasetVersion.State.READY,
    )


def with_domain(spec: RunSpec, domain: DatasetDomain | ReasoningGymDomain) -> RunSpec:
    return spec.model_copy(update={"domains": (domain,)})


def errors_of(spec: RunSpec) -> dict[str, str]:
    return {error.path: error.message for error in check(spec)}


def dataset_domain(version: DatasetVersion, **fields: object) -> DatasetDomain:
    return DatasetDomain.model_validate(
        {"type": "dataset", "name": "sums", "dataset_version": str(version.pk), **fields}
    )


def test_a_good_spec_has_no_errors(spec: RunSpec) -> None:
    assert errors_of(spec) == {}


def test_an_unknown_generator_is_told_at_its_field(spec: RunSpec) -> None:
    domain = ReasoningGymDomain(name="x", generator="basic_arithmetics")
    assert list(errors_of(with_domain(spec, domain))) == ["domains.0.generator"]


def test_a_wrong_setting_is_told_at_its_field(spec: RunSpec) -> None:
    domain = spec.domains[0].model_copy(update={"params": {"digits": 2}})
    assert list(errors_of(with_domain(spec, domain))) == ["domains.0.params.digits"]


@pytest.mark.parametrize(
    ("ref", "problem"),
    [
        ("/nowhere/at/all", "no model that this server can read"),
        ("no such model", "is no model"),
        ("{empty}", "no model that this server can read"),
        ("{empty}/models_dir/gone", "There is no directory"),
        ("{empty}/models_dir", "holds no config.json"),
        ("{empty}/models_dir/../../x", "no model that this server can read"),
        ("~nosuchuser/x", "no model that this server can read"),
        ("/" + "x" * 400, "no model that this server can read"),
        ("org/" + "x" * 400, "at most 96 characters"),
    ],
)
def test_a_model_that_is_not_there(
    spec: RunSpec, tmp_path: Path, settings: Any, ref: str, problem: str
) -> None:
    settings.MODELS_DIR = tmp_path / "models_dir"
    settings.MODELS_DIR.mkdir(exist_ok=True)
    model = ModelSpec(ref=ref.format(empty=tmp_path))
    assert problem in errors_of(spec.model_copy(update={"model": model}))["model.ref"]


def test_errors_do_not_tell_what_is_on_the_disk(spec: RunSpec, tmp_path: Path) -> None:
    """Not there, no model, a file, a closed or broken folder: the same words but for the path."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder" / "config.json").mkdir(parents=True)
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"x" * 1000)
    closed = tmp_path / "closed"
    (closed / "model").mkdir(parents=True)
    closed.chmod(0)
    said = set()
    for name in ("gone", "empty", "file", "file/x", "loop", "weights", "closed/model", "gone/../x"):
        ref = str(tmp_path / name)
        errors = errors_of(spec.model_copy(update={"model": ModelSpec(ref=ref)}))
        said.add(errors["model.ref"].replace(ref, "REF"))
        assert disk.parameters_of(ref) == disk.UNKNOWN_MODEL_PARAMETERS
    closed.chmod(0o700)
    assert len(said) == 1, said


def test_a_home_directory_is_not_told(spec: RunSpec) -> None:
    model = ModelSpec(ref="~/no/such/model")
    message = errors_of(spec.model_copy(update={"model": model}))["model.ref"]
    assert message.startswith("~/no/such/model is no model")
    assert str(Path.home()) not in message


@pytest.mark.parametrize("ref", ["tiny", "smollm2-135m-instruct", "org/name-1.7B"])
def test_models_that_are_plausible(spec: RunSpec, ref: str) -> None:
    assert errors_of(spec.model_copy(update={"model": ModelSpec(ref=ref)})) == {}


def test_a_dataset_is_frozen_into_the_spec(spec: RunSpec, version: DatasetVersion) -> None:
    spec = with_domain(spec, dataset_domain(version))
    assert errors_of(spec) == {}
    frozen = fill_content_hashes(spec).domains[0]
    assert isinstance(frozen, DatasetDomain)
    assert frozen.content_hash == "abc"


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        ({"state": "building"}, "dataset_version", "no such dataset version"),
        ({"held_out_count": 1}, "dataset_version", "1 held-out records"),
        ({"record_count": 5}, "dataset_version", "1 train records"),
        ({"content_hash": "xyz"}, "content_hash", "another hash"),
    ],
)
def test_a_dataset_that_cannot_be_used(
    spec: RunSpec,
    version: DatasetVersion,
    change: dict[str, object],
    field: str,
    problem: str,
) -> None:
    DatasetVersion.objects.filter(pk=version.pk).update(**change)
    errors = errors_of(with_domain(spec, dataset_domain(version, content_hash="abc")))
    assert problem in errors[f"domains.0.{field}"]


def test_the_estimate_counts_what_is_kept(spec: RunSpec) -> None:
    kept = spec.model_copy(update={"checkpoint": CheckpointSpec(keep_last=4, keep_best=True)})
    assert disk.checkpoints_kept(kept) == 6
    assert (
        disk.needed_bytes(kept) == build_tiny_model().num_parameters() * 12 * 6 + disk.SPARE_BYTES
    )


def test_the_size_of_a_local_model_is_read_from_its_files(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x" * 1000)
    (tmp_path / "config.json").write_text("{}")
    assert disk.parameters_of(str(tmp_path)) == 500


def test_what_a_run_has_saved_already_is_not_counted_again(
    spec: RunSpec, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = run.run_dir.checkpoint(2)
    saved.mkdir(parents=True)
    (saved / "weights").write_bytes(b"x" * 50_000_000)
    free = disk.needed_bytes(spec) - 10_000_000

    class Usage:
        def __init__(self, _: object) -> None:
            self.free = free

    monkeypatch.setattr(disk.shutil, "disk_usage", Usage)
    assert "The run needs about" in disk.problem_with_space(spec)
    assert disk.problem_with_space(spec, run.directory) == ""


def test_who_sees_and_who_steers(run: Run, alice: User, bob: User) -> None:
    staff = User.objects.create_superuser("root")
    assert get_run_for_user(bob, run.number) == run
    assert get_controllable_run_for_user(alice, run.number) == run
    assert get_controllable_run_for_user(staff, run.number) == run
    assert [can_control(user, run) for user in (alice, bob, staff)] == [True, False, True]
    with pytest.raises(PermissionDenied, match="belongs to alice"):
        get_controllable_run_for_user(bob, run.number)
    with pytest.raises(Http404):
        get_run_for_user(bob, 404)
    with pytest.raises(Http404):
        get_run_for_user(AnonymousUser(), run.number)


def fill_answers(version: DatasetVersion, answers: list[str]) -> None:
    DatasetRecord.objects.bulk_create(
        DatasetRecord(
            version=version,
            index=index,
            record_id=str(index),
            split="train",
            payload={"record_id": str(index), "messages": [], "answer": answer},
        )
        for index, answer in enumerate(answers)
    )
    version.record_count = len(answers)
    version.save()


def test_answers_that_the_reward_cannot_use_are_told_before_the_launch(
    spec: RunSpec, version: DatasetVersion
) -> None:
    fill_answers(version, ["Paris", "London", "Rome", "7"])
    message = errors_of(with_domain(spec, dataset_domain(version)))["domains.0.dataset_version"]
    assert "'correctness'" in message
    assert "3 of 4" in message


def test_a_few_bad_answers_do_not_stop_a_launch(spec: RunSpec, version: DatasetVersion) -> None:
    fill_answers(version, [str(n) for n in range(500)] + ["Paris"])
    assert errors_of(with_domain(spec, dataset_domain(version))) == {}


def test_a_generator_of_words_under_a_reward_of_numbers_is_told(spec: RunSpec) -> None:
    domain = ReasoningGymDomain(name="words", generator="letter_counting")
    assert errors_of(with_domain(spec, domain)) == {}
    domain = ReasoningGymDomain(name="words", generator="spell_backward")
    assert list(errors_of(with_domain(spec, domain))) == ["domains.0.generator"]
