"""Fixtures and options of every test: real engines, started when the first test needs them.

`django_db` tests get PostgreSQL by themselves; a test that talks to Valkey or starts processes
asks for `engines` (`engines.child_environment()` is the environment for such a process). Folders
add their own fixtures in their own conftest.py.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import engines as throwaway
from tests.engines import Engines
from training_core.models.processor import use_repeatable_products


def pytest_configure() -> None:
    """Whatever ends this invocation ends its engines; sums are the same each time."""
    use_repeatable_products()
    atexit.register(throwaway.leave_home)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out GPU tests on a machine without one, and say how many."""
    from webapp.launcher.gpus import find_gpus  # noqa: PLC0415 - asks the driver

    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and not find_gpus():
        items[:] = [item for item in items if item not in on_gpu]
        config.hook.pytest_deselected(items=on_gpu)
        config.stash[GPU_TESTS_LEFT_OUT] = len(on_gpu)
        if hasattr(config, "workeroutput"):  # one process of several, that prints nothing itself
            config.workeroutput["gpu_tests_left_out"] = len(on_gpu)
    if hasattr(
        config, "workerinput"
    ):  # stable: the tests of a file, and other files, stay in order
        items.sort(key=lambda item: turn_of(item.nodeid.partition("::")[0]))


LONGEST_FILES = (
    "tests/browser/test_accessibility.py",
    "tests/chain/test_command.py",
    "tests/browser/test_screenshots.py",
    "tests/training_core/models/test_hub.py",
    "tests/webapp/test_every_url.py",
    "tests/workers/test_glass.py",
    "tests/browser/test_trouble.py",
    "tests/workers/test_celery.py",
    "tests/webapp/metrics/test_curves_page.py",
    "tests/workers/test_real_trainer.py",
    "tests/chain/test_first_ten_minutes.py",
    "tests/webapp/api/test_fuzz.py",
)
"""Whole files are given out, in this order: a long one at the end would leave the others idle."""


def turn_of(file: str) -> int:
    """When a file is given out among several processes: long ones first, then the others."""
    return LONGEST_FILES.index(file) if file in LONGEST_FILES else len(LONGEST_FILES)


# One Playwright in one thread: one set of fixtures.
pytest_plugins = ("tests.browser.session", "tests.browser.house")

GPU_TESTS_LEFT_OUT = pytest.StashKey[int]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each of several processes has left out the same tests."""
    left_out = getattr(node, "workeroutput", {}).get("gpu_tests_left_out", 0)
    node.config.stash[GPU_TESTS_LEFT_OUT] = left_out


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was left out."""
    if count := config.stash.get(GPU_TESTS_LEFT_OUT, 0):
        terminalreporter.write_line(f"{count} GPU tests left out: this machine has no GPU.")


@pytest.fixture(scope="session")
def engines() -> Iterator[Engines]:
    """Throw-away PostgreSQL and Valkey of this invocation."""
    yield throwaway.start()
    throwaway.leave_home()


@pytest.fixture(autouse=True)
def language_of_before() -> Iterator[None]:
    """A request leaves its language behind in the thread; the next test expects English."""
    from django.utils import translation  # noqa: PLC0415 - Django is set up by now

    yield
    translation.deactivate()


@pytest.fixture(scope="session", autouse=True)
def newcomers_join_main() -> Callable[..., None]:
    """Whoever a test makes is a researcher of the main project, until the test says otherwise."""
    from django.db.models.signals import post_save  # noqa: PLC0415 - Django is set up by now

    from webapp.accounts.models import Membership, Project, Role, User  # noqa: PLC0415

    def join(instance: User, created: bool, raw: bool, **_: Any) -> None:
        if not created or raw:
            return
        main = Project.objects.main()  # a transactional test has emptied the table
        if not instance.is_superuser:
            Membership.objects.create(project=main, user=instance, role=Role.RESEARCHER)

    post_save.connect(join, sender=User, weak=False, dispatch_uid="tests")
    return join


@pytest.fixture
def newcomers_stay_out(newcomers_join_main: Callable[..., None]) -> Iterator[None]:
    """Whoever the test makes is in no project, as outside of tests."""
    from django.db.models.signals import post_save  # noqa: PLC0415 - Django is set up by now

    from webapp.accounts.models import User  # noqa: PLC0415

    post_save.disconnect(sender=User, dispatch_uid="tests")
    yield
    post_save.connect(newcomers_join_main, sender=User, weak=False, dispatch_uid="tests")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(engines: Engines) -> None:
    """Start the engines before pytest-django makes the test database (its hook for this). Each
    process has engines of its own, so the database needs no process's name in its own."""
