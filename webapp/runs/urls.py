"""Addresses of runs."""

from __future__ import annotations

from django.urls import path

from webapp.runs.views import config, detail, index, launch, logs
from webapp.runs.views.checkpoints import checkpoints
from webapp.runs.views.control import control
from webapp.runs.views.first_steps import first_steps
from webapp.runs.views.rollouts import rollouts

app_name = "runs"
urlpatterns = [
    path("", index.index, name="index"),
    path("first-steps/", first_steps, name="first_steps"),
    path("new/", launch.launch, name="launch"),
    path("new/preset/", launch.launch_preset, name="launch_preset"),
    path("new/check/", launch.check, name="check"),
    path("new/copy/", launch.copy_as, name="copy_as"),
    path("<int:number>/", detail.detail, name="detail"),
    path("<int:number>/phase/", detail.live, name="phase"),
    path("<int:number>/changed/", detail.changed, name="changed"),
    path("<int:number>/evaluations/", detail.evaluations, name="evaluations"),
    path("<int:number>/row/", index.row, name="row"),
    path("<int:number>/rollouts/", rollouts, name="rollouts"),
    path("<int:number>/config/", config.config, name="config"),
    path("<int:number>/config.yaml", config.config_yaml, name="config_yaml"),
    path("<int:number>/logs/", logs.logs, name="logs"),
    path("<int:number>/logs/piece/", logs.log_piece, name="log_piece"),
    path("<int:number>/checkpoints/", checkpoints, name="checkpoints"),
    path("<int:number>/control/<str:command>/", control, name="control"),
]
