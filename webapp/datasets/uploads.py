"""Whether an uploaded file is taken: before it comes in, before and after it is stored.

Called by `webapp.asgi`, by the page and by the API.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from webapp.accounts.sessions import find_user
from webapp.datasets.access import upload_projects
from webapp.datasets.imports import upload_path
from webapp.datasets.layout import detect
from webapp.datasets.models import DatasetImport
from webapp.datasets.rows import FileError
from webapp.datasets.sentences import in_own_language

MOST_BYTES = 4_000_000_000
SPARE_BYTES = 500_000_000


def may_upload(scope: Mapping[str, Any]) -> bool:
    """Whether an ASGI request, not read yet, is of somebody who may add datasets somewhere."""
    user = find_user(scope)
    return user is not None and upload_projects(user).exists()


def problem_with_size(size: int) -> str:
    """Why a file of that many bytes is not taken; empty when it is."""
    if size == 0:
        return _("The file is empty.")
    if size > MOST_BYTES:
        return _("The file is larger than %(most)s GB. Split it.") % {"most": MOST_BYTES // 10**9}
    Path(settings.UPLOADS_DIR).mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(settings.UPLOADS_DIR).free < 3 * size + SPARE_BYTES:
        return _("There is not enough free disk for the file and its records.")
    return ""


def problem_with_file(job: DatasetImport) -> str:
    """Why a stored file is none that we read; empty when it is one."""
    try:
        detect(upload_path(job), job.file_name)
    except FileError as error:
        return in_own_language(error.message)
    return ""
