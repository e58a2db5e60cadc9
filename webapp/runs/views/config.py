"""The config tab: the frozen spec, what it differs in, and who did what."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from training_core.contract.presets import find_preset
from training_core.contract.yaml_text import dump_yaml, spec_to_yaml
from webapp.runs.access import get_run_for_user
from webapp.runs.models import Run
from webapp.runs.overview import find_parent, spec_of
from webapp.runs.spec_diff import Change, diff_documents
from webapp.runs.views.detail import run_context


@require_safe
def config(request: HttpRequest, number: int) -> HttpResponse:
    """The spec as YAML, beside its changes against where it came from."""
    run = get_run_for_user(request.user, number)
    words, changes = _changes(run, find_parent(run, request.user))
    context = run_context(
        request,
        run,
        "config",
        yaml=_yaml(run),
        base=words,
        changes=changes,
        events=list(run.events.order_by("-pk")[:200]),
        attempts=list(run.attempts.order_by("-number")),
    )
    return render(request, "runs/run/config.html", context)


@require_safe
def config_yaml(request: HttpRequest, number: int) -> HttpResponse:
    """The spec as a file."""
    run = get_run_for_user(request.user, number)
    response = HttpResponse(_yaml(run), content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="run-{run.number}.yaml"'
    return response


def _yaml(run: Run) -> str:
    """The spec in the order of its fields; JSON columns forget it, so only where it is readable."""
    spec = spec_of(run)
    return dump_yaml(run.spec) if spec is None else spec_to_yaml(spec)


def _changes(run: Run, parent: Run | None) -> tuple[str, list[Change]]:
    """(what it is compared with, changes); nothing for a run from nothing."""
    if parent is not None:
        words = _("run #%(number)s") % {"number": parent.number}
        return words, diff_documents(parent.spec, run.spec)
    if run.parent_id is not None:
        return "", []
    preset = find_preset(run.preset)
    if preset is None:
        return "", []
    words = _("the preset “%(title)s”") % {"title": preset.title}
    return words, diff_documents(preset.spec.model_dump(mode="json"), run.spec)
