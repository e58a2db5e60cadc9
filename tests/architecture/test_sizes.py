"""The limits of length. The exception list is empty and stays so."""

from __future__ import annotations

from collections.abc import Iterator

from tests.architecture.sources import PACKAGES, ROOT, functions, python_files, relative

EXCEPTIONS: frozenset[str] = frozenset()

MODULE, FUNCTION, LOOP, VIEW, TEMPLATE, SCRIPT = 400, 60, 80, 40, 200, 250


def too_long(limit: int, sizes: Iterator[tuple[str, int]]) -> list[str]:
    return [
        f"{name}: {lines} lines, limit {limit}"
        for name, lines in sizes
        if lines > limit and name not in EXCEPTIONS
    ]


def count_lines(folder: str, pattern: str) -> Iterator[tuple[str, int]]:
    for path in sorted((ROOT / folder).rglob(pattern)):
        if "vendor" not in path.parts:
            yield relative(path), len(path.read_text(encoding="utf-8").splitlines())


def test_exception_list_is_empty() -> None:
    assert not EXCEPTIONS


def test_modules() -> None:
    files = python_files(*PACKAGES, "tests", "benchmarks", "scripts")
    assert len(files) > 50
    sizes = ((relative(p), len(p.read_text(encoding="utf-8").splitlines())) for p in files)
    assert too_long(MODULE, sizes) == []


def test_functions() -> None:
    found = []
    for path in python_files(*PACKAGES, "tests", "benchmarks", "scripts"):
        limit = LOOP if relative(path) == "training_core/train.py" else FUNCTION
        found += too_long(limit, ((f"{relative(path)}:{n}", k) for n, k, _ in functions(path)))
    assert found == []


def test_views_and_tasks() -> None:
    files = [p for p in python_files("webapp") if "views" in p.parts or p.stem == "views"]
    files += python_files("workers/tasks")
    assert files
    found = []
    for path in files:
        found += too_long(VIEW, ((f"{relative(path)}:{n}", k) for n, k, _ in functions(path)))
    assert found == []


def test_templates() -> None:
    assert too_long(TEMPLATE, count_lines("templates", "*.html")) == []


def test_scripts() -> None:
    assert too_long(SCRIPT, count_lines("static", "*.js")) == []
