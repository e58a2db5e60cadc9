"""Back-off, log rotation, ports, the plan of processes: the launcher's arithmetic."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from webapp.launcher import addresses, logs, plan
from webapp.launcher.backoff import HEALTHY_AFTER_S, LONGEST_DELAY_S, Backoff
from webapp.launcher.errors import LauncherError


def test_delays_double_up_to_a_minute_and_never_overflow() -> None:
    backoff = Backoff()
    delays = [backoff.delay_after_death(0.0) for _ in range(2000)]
    assert delays[:4] == [1.0, 2.0, 4.0, 8.0]
    assert delays[-1] == LONGEST_DELAY_S


def test_a_healthy_spell_forgives() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.delay_after_death(0.0)
    backoff.started(100.0)
    assert backoff.delay_after_death(100.0 + HEALTHY_AFTER_S) == 1.0


def test_the_last_logs_are_kept_and_no_more(tmp_path: Path) -> None:
    for number in range(logs.KEPT + 3):
        with logs.open_log(tmp_path, "web") as log:
            log.write(f"start {number}".encode())
    texts = [logs.log_path(tmp_path, "web", old).read_text() for old in range(logs.KEPT)]
    assert texts == [f"start {number}" for number in (7, 6, 5, 4, 3)]
    assert len(list((tmp_path / "logs").iterdir())) == logs.KEPT


def test_each_installation_gets_a_port_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TEMPER_PORT", raising=False)
    with (
        addresses.open_listener("127.0.0.1", tmp_path) as first,
        addresses.open_listener("127.0.0.1", tmp_path) as second,
    ):
        assert addresses.FIRST_PORT <= first.getsockname()[1] < second.getsockname()[1]


def test_an_installation_keeps_its_port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Open pages find the server again, though a lower port has become free."""
    monkeypatch.delenv("TEMPER_PORT", raising=False)
    with (
        addresses.open_listener("127.0.0.1", tmp_path),
        addresses.open_listener("127.0.0.1", tmp_path) as second,
    ):
        port = second.getsockname()[1]
    addresses.remember_url(tmp_path, addresses.base_url("127.0.0.1", port))
    with addresses.open_listener("127.0.0.1", tmp_path) as again:
        assert again.getsockname()[1] == port
        with addresses.open_listener("127.0.0.1", tmp_path) as other:
            assert other.getsockname()[1] != port
    (tmp_path / "address.json").write_text('{"url": 7}')
    with addresses.open_listener("127.0.0.1", tmp_path) as any_one:
        assert any_one.getsockname()[1] >= addresses.FIRST_PORT


def test_a_wanted_port_must_be_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("TEMPER_PORT", str(taken.getsockname()[1]))
        with pytest.raises(LauncherError, match="already in use"):
            addresses.open_listener("127.0.0.1", tmp_path)
    monkeypatch.setenv("TEMPER_PORT", "http")
    with pytest.raises(LauncherError, match="no port number"):
        addresses.open_listener("127.0.0.1", tmp_path)


def test_a_host_that_is_not_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEMPER_PORT", "8765")
    with pytest.raises(LauncherError, match=r"TEMPER_HOST is 'no-such-host\.invalid'"):
        addresses.open_listener("no-such-host.invalid", tmp_path)
    with pytest.raises(LauncherError, match="cannot be used"):
        addresses.open_listener("192.0.2.1", tmp_path)


def test_the_link_leads_where_a_browser_can_go() -> None:
    assert addresses.base_url("127.0.0.1", 8001) == "http://127.0.0.1:8001"
    assert addresses.base_url("0.0.0.0", 8001) == "http://127.0.0.1:8001"
    assert addresses.base_url("::1", 8001) == "http://[::1]:8001"


@pytest.mark.parametrize(
    ("value", "queues"),
    [(None, ["train", "cpu"]), ("", []), (" cpu , cpu", ["cpu"]), ("train", ["train"])],
)
def test_the_environment_says_which_queues(
    monkeypatch: pytest.MonkeyPatch, value: str | None, queues: list[str]
) -> None:
    if value is None:
        monkeypatch.delenv("TEMPER_WORKER_QUEUES", raising=False)
    else:
        monkeypatch.setenv("TEMPER_WORKER_QUEUES", value)
    assert plan.worker_queues() == queues


def test_a_queue_name_is_not_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPER_WORKER_QUEUES", "--pool=solo; x")
    with pytest.raises(LauncherError, match="TEMPER_WORKER_QUEUES"):
        plan.worker_queues()


def test_training_gets_a_slot_for_each_gpu() -> None:
    assert "--concurrency=1" in plan.worker("train", 0).command
    assert "--concurrency=8" in plan.worker("train-a100", 8).command
    assert "--pool=threads" in plan.worker("train", 8).command
    assert "--pool=prefork" in plan.worker("cpu", 8).command
