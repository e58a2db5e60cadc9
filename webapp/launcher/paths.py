"""Where this installation keeps its state, and the addresses of its two engines.

Read by `webapp.settings`, the launcher, the workers and the tests. Everything here is computed
from the environment and the position of this file, never read from disk, so that settings can be
imported before any engine has run. What would surprise: socket paths live under /tmp and not
under `var/`, since a UNIX socket path is limited to about 107 bytes and a checkout may lie deep.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from webapp.launcher.errors import LauncherError
from webapp.launcher.variables import read_variable

REPOSITORY = Path(__file__).resolve().parents[2]
SOCKET_ROOT = Path("/tmp")  # short; the directory below it is checked to be ours
POSTGRES_PORT = 5432  # only a part of the socket's file name: nothing listens on TCP
DATABASE_NAME = "temper"
DATABASE_USER = "temper"
RESTORE_NOTE = "restoring"
"""File in the data directory that names a backup for as long as it is being restored."""


def data_dir() -> Path:
    """The directory of all state: TEMPER_DATA_DIR, else `var/` in the checkout."""
    chosen = os.environ.get("TEMPER_DATA_DIR")
    return Path(chosen).expanduser().resolve() if chosen else REPOSITORY / "var"


def logs_dir() -> Path:
    """Where each process of `manage.py up` writes its log."""
    return data_dir() / "logs"


def socket_dir(base: Path | None = None) -> Path:
    """A short directory for sockets, the same for the same data directory and user each time."""
    digest = hashlib.sha256(os.fsencode(base or data_dir())).hexdigest()[:12]
    return SOCKET_ROOT / f"temper-{os.getuid()}-{digest}"


def postgres_socket_dir(base: Path | None = None) -> Path:
    """The directory that holds PostgreSQL's socket."""
    return socket_dir(base) / "pg"


def valkey_socket(base: Path | None = None) -> Path:
    """Valkey's socket file."""
    return socket_dir(base) / "valkey.sock"


def ensure_socket_dir(base: Path | None = None) -> Path:
    """Create the socket directory, or check that the existing one is ours and private."""
    path = socket_dir(base)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise LauncherError(f"Cannot create the socket directory {path}: {error}.") from error
    facts = path.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise LauncherError(f"{path} is not a directory of this user; remove it and start again.")
    if facts.st_mode & 0o066:
        path.chmod(0o700)
    return path


def uses_embedded_postgres() -> bool:
    """Whether no DATABASE_URL points to a server of somebody else's keeping."""
    return not read_variable("DATABASE_URL")


def uses_embedded_valkey() -> bool:
    """Whether no REDIS_URL points to a server of somebody else's keeping."""
    return not read_variable("REDIS_URL")


def embedded_database_url(base: Path | None = None, name: str = DATABASE_NAME) -> str:
    """The libpq URL of the embedded PostgreSQL of one data directory."""
    host = quote(str(postgres_socket_dir(base)), safe="/")
    return f"postgresql://{DATABASE_USER}@/{name}?host={host}"


def embedded_redis_url(base: Path | None = None) -> str:
    """The redis-py URL of the embedded Valkey of one data directory."""
    return f"unix://{valkey_socket(base)}?db=0"


def database_url() -> str:
    """DATABASE_URL, else the embedded PostgreSQL's socket."""
    return read_variable("DATABASE_URL") or embedded_database_url()


def redis_url() -> str:
    """REDIS_URL, else the embedded Valkey's socket (a URL for redis-py)."""
    return read_variable("REDIS_URL") or embedded_redis_url()


def celery_broker_url() -> str:
    """The same server in the spelling of Celery, which names socket URLs in its own way."""
    url = redis_url()
    if not url.startswith("unix:"):
        return url
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("db", ["0"])[0]
    credentials = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return f"redis+socket://{credentials}{parts.path}?virtual_host={database}"


def databases_entry(url: str | None = None) -> dict[str, object]:
    """The DATABASES["default"] entry for a `postgresql://` URL (default: `database_url()`)."""
    parts = urlsplit(url or database_url())
    if parts.scheme not in {"postgres", "postgresql"}:
        raise LauncherError(
            f"DATABASE_URL begins with {parts.scheme or 'nothing'}:// but Temper needs PostgreSQL: "
            "postgresql://user:password@host:5432/name."
        )
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    host = options.pop("host", None) or (unquote(parts.hostname) if parts.hostname else "")
    port = options.pop("port", None) or (str(parts.port) if parts.port else "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or DATABASE_NAME,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": port,
        "OPTIONS": options,
    }


if __name__ == "__main__":
    print(database_url())  # for pg_dump and psql: `python -m webapp.launcher.paths`
