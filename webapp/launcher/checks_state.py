"""Checks of the engines and of what runs: database, schema, broker, workers, prepared model.

Called by `manage.py doctor` through the list STATE_CHECKS. With `up` not running they say so once
and try the engines' binaries on a throw-away directory instead, so that a machine on which
PostgreSQL cannot start is found out before the first `up`.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from pathlib import Path

import redis
from django.conf import settings

from webapp.launcher import database_steps, paths
from webapp.launcher.console import readable_size, size_of
from webapp.launcher.diagnosis import Check, Finding, fail, ok, warn
from webapp.launcher.instance_lock import lock_holder
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.servers import try_database, try_redis
from webapp.launcher.valkey import EmbeddedValkey
from webapp.ui.model_progress import read_model_progress

NOT_RUNNING = "Start it with `manage.py up`."
OLDEST_POSTGRES = 14


def running() -> Finding:
    """Whether `up` runs here."""
    holder = lock_holder(paths.data_dir())
    if holder is None:
        return warn("manage.py up", "does not run", "Start it with `make run`.")
    return ok("manage.py up", f"process {holder}")


def postgres() -> Finding:
    """A real connection, or a trial start."""
    if paths.uses_embedded_postgres() and not EmbeddedPostgres().is_ready():
        seconds = trial(EmbeddedPostgres)
        return warn("PostgreSQL", f"stopped; a trial start took {seconds:.1f} s", NOT_RUNNING)
    version = try_database()
    if int(version.split(".")[0]) < OLDEST_POSTGRES:
        return fail("PostgreSQL", version, f"Use version {OLDEST_POSTGRES} or newer.")
    return ok("PostgreSQL", f"{version} at {where(paths.uses_embedded_postgres())}")


def migrations() -> Finding:
    """The schema against the code."""
    if not database_answers():
        return warn("migrations", "not looked at: no database", NOT_RUNNING)
    pending = database_steps.pending_migrations()
    if pending:
        remedy = "Run `manage.py up`, which applies them, or `manage.py migrate`."
        return fail("migrations", f"{len(pending)} not applied: {pending[0]} ...", remedy)
    return ok("migrations", "up to date")


def valkey() -> Finding:
    """A value written and read back, or a trial start."""
    if paths.uses_embedded_valkey() and not EmbeddedValkey().is_ready():
        seconds = trial(EmbeddedValkey)
        return warn("Valkey", f"stopped; a trial start took {seconds:.1f} s", NOT_RUNNING)
    version = try_redis()
    milliseconds = round_trip_s() * 1000
    detail = f"{version} at {where(paths.uses_embedded_valkey())}, round trip {milliseconds:.1f} ms"
    return ok("Valkey", detail)


def workers() -> Finding:
    """The workers' own reports in the database."""
    if not database_answers() or database_steps.pending_migrations():
        return warn("workers", "not looked at: no database", NOT_RUNNING)
    from webapp.workers_page.models import Worker  # noqa: PLC0415 - the app registry is ready now

    alive = [str(worker) for worker in Worker.objects.alive()]
    deaf = [worker.name for worker in Worker.objects.alive() if worker.is_deaf]
    if deaf:
        remedy = "Look at Valkey and at var/logs/worker-*.log, then restart `manage.py up`."
        return fail("workers", f"hear nothing from the broker: {', '.join(deaf)}", remedy)
    if not alive:
        remedy = "Runs wait until a worker starts: look at var/logs/worker-*.log."
        return warn("workers", "none has reported lately", remedy)
    return ok("workers", ", ".join(alive))


def prepared_model() -> Finding:
    """The small model, dequantised."""
    folder = Path(settings.MODELS_DIR)
    progress = read_model_progress(folder)
    log = "see var/logs/prepare-model.log"
    if progress.state == "ready":
        return ok("prepared model", f"{readable_size(size_of(folder))} in {folder}")
    if progress.state == "failed":
        remedy = f"Mend that ({log}) and run `manage.py up` again."
        return fail("prepared model", progress.message, remedy)
    if progress.state == "running" and not progress.is_stale:
        return ok("prepared model", f"in preparation: {progress.message}")
    remedy = f"`manage.py up` prepares it in the background; {log}."
    return warn("prepared model", f"none in {folder}", remedy)


def trial(engine_class: type[EmbeddedPostgres] | type[EmbeddedValkey]) -> float:
    """Start an engine on a directory of its own and throw it away; the seconds it took."""
    base = Path(tempfile.mkdtemp(prefix="temper-trial-")).resolve()
    engine = engine_class(base, disposable=True)
    started = time.monotonic()
    try:
        engine.start()
        return time.monotonic() - started
    finally:
        engine.stop()
        shutil.rmtree(paths.socket_dir(base), ignore_errors=True)
        shutil.rmtree(base, ignore_errors=True)


def round_trip_s() -> float:
    """Seconds to write a value and read it back."""
    key, value = f"temper:doctor:{secrets.token_hex(8)}", secrets.token_bytes(16)
    with redis.Redis.from_url(paths.redis_url(), socket_timeout=5) as client:
        started = time.monotonic()
        client.set(key, value, ex=60)
        read = client.get(key)
        seconds = time.monotonic() - started
        client.delete(key)
    if read != value:
        raise ValueError("it does not give back what was written")
    return seconds


def database_answers() -> bool:
    """Whether the ORM can be used without waiting for a pool to give up."""
    if paths.uses_embedded_postgres():
        return EmbeddedPostgres().is_ready()
    try:
        try_database()
    except RuntimeError:
        return False
    return True


def where(embedded: bool) -> str:
    """In words."""
    return str(paths.socket_dir()) if embedded else "an external server"


STATE_CHECKS: list[Check] = [running, postgres, migrations, valkey, workers, prepared_model]
