"""The embedded Valkey answers on its socket, alone, and starts empty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import kombu
import redis

from webapp.launcher import paths
from webapp.launcher.valkey import EmbeddedValkey


def test_it_starts_empty_stops_and_starts_again(base: Path) -> None:
    server = EmbeddedValkey(base)
    server.start()
    with redis.Redis.from_url(server.url) as client:
        client.set("key", "value")
        assert client.get("key") == b"value"
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    server.stop()
    assert not server.is_ready()
    server.start()
    with redis.Redis.from_url(server.url) as client:
        assert client.get("key") is None


def test_it_comes_back_after_kill_9(base: Path) -> None:
    server = EmbeddedValkey(base)
    server.start()
    process = server.running_process()
    assert process is not None
    process.kill()
    again = EmbeddedValkey(base)
    again.start()
    assert again.is_ready()


def test_two_data_directories_at_once(new_base: Callable[[], Path]) -> None:
    one, two = EmbeddedValkey(new_base()), EmbeddedValkey(new_base())
    one.start()
    two.start()
    one.stop()
    assert two.is_ready()


def test_celery_reaches_it_by_its_own_url(base: Path) -> None:
    server = EmbeddedValkey(base)
    server.start()
    url = f"redis+socket://{paths.valkey_socket(base)}?virtual_host=0"
    with kombu.Connection(url) as connection:
        queue = connection.SimpleQueue("launcher-test")
        queue.put({"id": 1})
        assert queue.get(timeout=5).payload == {"id": 1}
        queue.close()
