"""Django settings of the tests: the real ones, on a throw-away data directory.

Named in pyproject.toml: pytest-django loads settings before any conftest.py, so this is the one
place that can move the data directory in time. Processes under test load `webapp.settings` itself
and find the directory in their environment.
"""

from __future__ import annotations

import os

from tests.engines import enter_home

enter_home()
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"  # for child processes

from webapp.settings import *  # noqa: E402, F403 - the paths had to be set first

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # strength costs seconds
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
