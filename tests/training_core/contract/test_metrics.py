from __future__ import annotations

import pytest

from training_core.contract.metrics import METRICS, find_metric, is_wall_clock


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("reward", "reward"),
        ("eval/pass@1", "eval/pass@1"),
        ("rewards/correctness/mean", "rewards/{name}/mean"),
        ("rewards/last-number_2/std", "rewards/{name}/std"),
        ("domain/math/add/reward", "domain/{domain}/reward"),
        ("domain/math/add/eval/pass@1", "domain/{domain}/eval/pass@1"),
        ("domain/eval/reward", "domain/{domain}/reward"),
        ("eval/rewards/format", "eval/rewards/{name}"),
    ],
)
def test_a_name_finds_its_definition(name: str, definition: str) -> None:
    found = find_metric(name)
    assert found is not None
    assert found.name == definition


@pytest.mark.parametrize(
    "name",
    [
        "",
        "rewards",
        "reward2",
        "rewards//mean",
        "rewards/Bad/mean",
        "rewards/{name}/mean",
        "domain//reward",
        "rewards/a/b/mean",
        " reward",
        "reward\n",
        "domain/math/add/nope",
    ],
)
def test_names_that_nobody_registered_are_unknown(name: str) -> None:
    assert find_metric(name) is None
    assert not is_wall_clock(name)


def test_every_definition_finds_itself_and_only_itself() -> None:
    for metric in METRICS:
        name = metric.name.replace("{name}", "abc").replace("{domain}", "math/abc")
        assert find_metric(name) == metric


def test_definitions_are_complete() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert metric.meaning.endswith("."), metric
        assert metric.direction in {"higher", "lower", "none"}
    assert any(metric.headline for metric in METRICS)


def test_only_speed_depends_on_the_clock() -> None:
    clocked = {metric.name for metric in METRICS if metric.wall_clock}
    assert {"time/step", "perf/rollout_tokens_per_s", "system/rss"} <= clocked
    assert all(name.split("/")[0] in {"time", "perf", "system"} for name in clocked)
    assert is_wall_clock("time/step")
    assert not is_wall_clock("reward")
