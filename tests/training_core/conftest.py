"""What every test of the core is protected from: its own limits, beyond its own end."""

from __future__ import annotations

import resource
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Lift a limit on file sizes as soon as a test ends: pytest writes its report next, and a
    report that goes to a file would meet the limit."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        return (yield)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
