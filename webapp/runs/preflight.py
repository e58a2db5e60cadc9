"""What can be known to be wrong with a spec before anything starts, as errors at fields.

Called by `services.launch_run` and by the launch page. Pydantic has checked each value already;
here the world is asked: does the generator exist, the dataset, the model, the reward that counts
as success. What needs the model itself (an EOS token, a chat template) fails in the trainer's load
phase, with a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from training_core.contract.domains import (
    DatasetDomain,
    DatasetRecord,
    Message,
    ReasoningGymDomain,
)
from training_core.contract.field_errors import FieldError
from training_core.contract.rewards import RewardSpec, iter_leaves
from training_core.contract.spec import BUILTIN_MODEL, TINY_MODEL, RunSpec
from training_core.contract.stages import SftStage
from training_core.contract.wheels import is_wheel, problem_with_wheel
from training_core.domains.dataset import fill_template, make_item
from training_core.rewards.completion import CompletionView
from training_core.rewards.gold import gold_faults
from training_core.rewards.tree import TreeScore, score_tree
from webapp.accounts.models import Project
from webapp.datasets.models import DatasetVersion
from webapp.datasets.services import find_version, sample_answers
from webapp.runs import probe
from webapp.runs.model_paths import find_run_of_path, is_path, no_model, problem_with_path
from webapp.runs.models import Run

HUB_ID = re.compile(r"[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*")
LONGEST_HUB_ID = 96
FEWEST_RECORDS = 2
SAMPLED_ANSWERS = 200


def check(spec: RunSpec, project: Project | None = None) -> list[FieldError]:
    """Everything that is wrong, in the order of the spec's fields; empty when it may start.

    With a project, datasets of other projects do not exist, nor do checkpoints and exports of their
    runs.
    """
    return [
        *_model_errors(spec.model.ref, project),
        *_domain_errors(spec, project),
        *_stage_errors(spec),
        *_evaluation_errors(spec),
    ]


def answer_faults(reward: RewardSpec, answer: str) -> list[str]:
    """Why rewards cannot use a right answer that somebody typed; empty when they can."""
    words = _("The reward '%(reward)s' cannot use this answer: %(reason)s.")
    return [
        words % {"reward": fault.reward, "reason": fault.explanation}
        for fault in gold_faults(reward, [answer])
    ]


def can_use_answers(reward: RewardSpec, answers: Sequence[str]) -> bool:
    """Whether every reward can use nearly all of these right answers."""
    return all(20 * fault.bad <= len(answers) for fault in gold_faults(reward, answers))


def score_replies(reward: RewardSpec, replies: Sequence[tuple[str, str]]) -> list[TreeScore]:
    """What the rewards say to (reply, right answer) pairs. Lengths are not known here: 0 tokens."""
    return [
        score_tree(reward, CompletionView(text=reply, answer=answer, tokens=0))
        for reply, answer in replies
    ]


def prompt_of(domain: DatasetDomain, record: DatasetRecord) -> tuple[Message, ...]:
    """The chat turns that a record becomes, by the function that training uses."""
    return make_item(domain, record).messages


def right_reply(domain: DatasetDomain, record: DatasetRecord) -> str:
    """The domain's reply with the record's right answer."""
    return fill_template(domain, record)


def fill_content_hashes(spec: RunSpec) -> RunSpec:
    """The spec with each dataset frozen: its version's hash is part of the experiment."""
    domains = tuple(
        domain.model_copy(update={"content_hash": version.content_hash})
        if isinstance(domain, DatasetDomain) and (version := find_version(domain.dataset_version))
        else domain
        for domain in spec.domains
    )
    return spec.model_copy(update={"domains": domains})


def _model_errors(ref: str, project: Project | None) -> Iterator[FieldError]:
    """A model that is neither built in, nor on disk or installed, nor spelled like a hub id."""
    if ref in {BUILTIN_MODEL, TINY_MODEL}:
        return
    if is_path(ref) and _is_of_another_project(ref, project):
        yield FieldError("model.ref", no_model(ref))
    elif is_path(ref):
        if problem := problem_with_path(ref):
            yield FieldError("model.ref", problem)
    elif is_wheel(ref):
        if problem := problem_with_wheel(ref):
            yield FieldError("model.ref", problem)
    elif not HUB_ID.fullmatch(ref):
        yield FieldError(
            "model.ref",
            _(
                "%(ref)s is no model: use %(builtin)s, %(tiny)s, a hub id such as org/name, "
                "a path that begins with / or ./, or wheel:NAME."
            )
            % {"ref": repr(ref), "builtin": BUILTIN_MODEL, "tiny": TINY_MODEL},
        )
    elif len(ref) > LONGEST_HUB_ID:
        words = _("A hub id has at most %(count)s characters.") % {"count": LONGEST_HUB_ID}
        yield FieldError("model.ref", words)


def _is_of_another_project(ref: str, project: Project | None) -> bool:
    """Whether a path leads to weights of a run that the project's members need not see."""
    run_id = find_run_of_path(ref)
    if run_id is None or project is None:
        return False
    return Run.objects.filter(pk=run_id).exclude(project=project).exists()


def _domain_errors(spec: RunSpec, project: Project | None) -> Iterator[FieldError]:
    """Generators and their settings, dataset versions and their sizes."""
    generated = [domain for domain in spec.domains if isinstance(domain, ReasoningGymDomain)]
    probed = iter(probe.faults(generated, spec.reward))
    for index, domain in enumerate(spec.domains):
        at = f"domains.{index}"
        if isinstance(domain, DatasetDomain):
            yield from _dataset_errors(at, domain, spec.reward, project)
        else:
            for error in next(probed):
                yield FieldError(f"{at}.{error.path}" if error.path else at, error.message)


def _dataset_errors(
    at: str, domain: DatasetDomain, reward: RewardSpec, project: Project | None
) -> Iterator[FieldError]:
    """A version that is there, unchanged, large enough, and whose answers the rewards can use."""
    version: DatasetVersion | None = find_version(domain.dataset_version)
    field = f"{at}.dataset_version"
    if version is None or (project is not None and version.dataset.project_id != project.pk):
        # One sentence for both: what another project holds is not told here.
        words = _("There is no such dataset version, or its import is not done.")
        if project is not None:
            words = _(
                "The project %(project)s has no such dataset version, or its import is not done."
            ) % {"project": project}
        yield FieldError(field, words)
        return
    if domain.content_hash and domain.content_hash != version.content_hash:
        yield FieldError(
            f"{at}.content_hash",
            _(
                "%(version)s has another hash than this spec was made with; leave the field empty "
                "to take the version as it is."
            )
            % {"version": version},
        )
    sides = (
        (
            version.train_count,
            _("%(version)s has %(count)s train records; at least %(least)s are needed."),
        ),
        (
            version.held_out_count,
            _("%(version)s has %(count)s held-out records; at least %(least)s are needed."),
        ),
    )
    for count, words in sides:
        if count < FEWEST_RECORDS:
            numbers = {"version": version, "count": count, "least": FEWEST_RECORDS}
            yield FieldError(field, words % numbers)
    answers = sample_answers(version, SAMPLED_ANSWERS)
    for fault in gold_faults(reward, answers):
        if fault.bad > len(answers) // 2:
            yield FieldError(
                field,
                _(
                    "The reward '%(reward)s' cannot use most answers of %(version)s:"
                    " %(reason)s (%(bad)s of %(total)s looked at)."
                )
                % {
                    "reward": fault.reward,
                    "version": version,
                    "reason": fault.explanation,
                    "bad": fault.bad,
                    "total": len(answers),
                },
            )


def _stage_errors(spec: RunSpec) -> Iterator[FieldError]:
    """Demonstrations for sft stages."""
    if not any(isinstance(stage, SftStage) for stage in spec.stages):
        return
    for index, domain in enumerate(spec.domains):
        if domain.weight > 0 and not domain.demonstration_template.strip():
            yield FieldError(
                f"domains.{index}.demonstration_template",
                _("The program has an sft stage, so the template must say what to imitate."),
            )


def _evaluation_errors(spec: RunSpec) -> Iterator[FieldError]:
    """pass@1 must refer to a reward that there is."""
    names = [leaf.name for leaf in iter_leaves(spec.reward.root)]
    if spec.evaluation.success_reward not in names:
        yield FieldError(
            "evaluation.success_reward",
            _("No reward is named %(name)s; there are: %(names)s.")
            % {"name": repr(spec.evaluation.success_reward), "names": ", ".join(names)},
        )
