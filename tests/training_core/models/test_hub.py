"""Models of a hub: fetched once, found again without a network, and refused in a sentence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.training_core.models.hub_server import COMMIT, MEMBER, STRANGER, Hub, Repository
from training_core.contract.hub_cache import find_snapshot, hub_cache
from training_core.models.tiny import build_tiny_model, build_tiny_tokenizer
from webapp.launcher.paths import REPOSITORY

Client = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved")
    build_tiny_model().save_pretrained(path)
    build_tiny_tokenizer().save_pretrained(path)
    return path


def spoilt(saved: Path, **config: Any) -> Repository:
    """The same with another config."""
    found = Repository.of(saved)
    document = json.loads(found.files["config.json"]) | config
    found.files["config.json"] = json.dumps(document).encode()
    return found


def without(saved: Path, *names: str, **more: bytes) -> Repository:
    """The same without some files, and with others."""
    found = Repository.of(saved)
    for name in names:
        del found.files[name]
    found.files.update(more)
    return found


@pytest.fixture
def hub(saved: Path) -> Iterator[Hub]:
    weights = "model.safetensors"
    repositories = {
        "org/good": Repository.of(saved),
        "org/gated": Repository.of(saved, gated=True),
        "org/pickled": without(saved, weights, **{"pytorch_model.bin": b"\x80"}),
        "org/for-others": Repository({"model.Q4_1.gguf": b"GGUF"}),
        "org/empty": without(saved, weights),
        "org/strange": spoilt(saved, model_type="no-such-kind"),
        "org/with-code": spoilt(saved, model_type="custom", auto_map={"AutoConfig": "c.C"}),
        "org/encoder": spoilt(saved, model_type="vit"),
        "org/quantised": spoilt(saved, quantization_config={"quant_method": "gptq"}),
        "org/huge": Repository.of(saved, sizes={weights: 10**16}),
        "org/no-words": without(saved, "tokenizer.json"),
        "org/no-template": without(saved, "chat_template.jinja"),
    }
    with Hub(repositories) as hub:
        yield hub


@pytest.fixture
def client(hub: Hub, tmp_path: Path) -> Client:
    """Load references in a fresh process under an environment."""

    def load(*refs: str, **environment: str) -> dict[str, dict[str, Any]]:
        known = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        own = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "tests.training_core.models.hub_client", *refs],
            cwd=REPOSITORY,
            env={**known, **own, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
        return found

    return load


def weights_sent(hub: Hub) -> set[str]:
    return {name.rpartition("/")[0] for name in hub.fetched if name.endswith(".safetensors")}


def test_a_model_is_fetched_once_and_needs_no_network_then(
    hub: Hub, client: Client, tmp_path: Path
) -> None:
    hub.repositories["org/good"].files |= {"extra.onnx": b"x", "pytorch_model.bin": b"x"}
    first = client("org/good")["org/good"]
    assert first["parameters"] == build_tiny_model().num_parameters()
    snapshot = find_snapshot(tmp_path / "hub", "org/good")
    assert snapshot is not None
    assert snapshot.name == COMMIT
    assert {path.name for path in snapshot.iterdir()} == {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    hub.fetched.clear()
    assert client("org/good")["org/good"]["parameters"] == first["parameters"]
    assert hub.fetched == []
    away = client("org/good", HF_ENDPOINT="http://127.0.0.1:9")["org/good"]
    offline = client("org/good", HF_HUB_OFFLINE="1")["org/good"]
    assert away["parameters"] == offline["parameters"] == first["parameters"]


REFUSED = {
    "org/missing": "There is no model org/missing on the hub, or it is private",
    "org/gated": "there is no HF_TOKEN",
    "org/pickled": "PyTorch pickle files alone",
    "org/for-others": "holds no config.json",
    "org/empty": "holds no weights in safetensors",
    "org/strange": "of the kind no-such-kind, which transformers",
    "org/with-code": "needs code of its own",
    "org/encoder": "which is no causal language model",
    "org/quantised": "stored quantised (gptq)",
    "org/huge": "needs 10000000.0 GB of disk",
}
REFUSED_LATER = {
    "org/no-words": "holds no tokenizer",
    "org/no-template": "has no chat template",
}


def test_each_refusal_is_a_sentence_and_comes_before_the_weights(hub: Hub, client: Client) -> None:
    found = client(*REFUSED, *REFUSED_LATER)
    for ref, words in (REFUSED | REFUSED_LATER).items():
        assert words in found[ref]["message"], found[ref]
        assert ref in found[ref]["message"]
        assert found[ref]["advice"].endswith(".")
    assert weights_sent(hub) == {*REFUSED_LATER}


def test_what_a_token_opens(hub: Hub, client: Client) -> None:
    assert "parameters" in client("org/gated", HF_TOKEN=MEMBER)["org/gated"]
    assert weights_sent(hub) == {"org/gated"}


def test_what_a_token_does_not_open(hub: Hub, client: Client) -> None:
    stranger = client("org/gated", "org/missing", HF_TOKEN=STRANGER)
    assert "the account of HF_TOKEN has no access" in stranger["org/gated"]["message"]
    assert "not open to the account of HF_TOKEN" in stranger["org/missing"]["message"]
    wrong = client("org/good", HF_TOKEN="hf_wrong")["org/good"]
    assert "does not accept the token in HF_TOKEN" in wrong["message"]
    assert weights_sent(hub) == set()
    assert "hf_" not in json.dumps([stranger, wrong])


def test_a_hub_that_is_ill_and_one_that_is_away(hub: Hub, client: Client, tmp_path: Path) -> None:
    hub.status = 503
    ill = client("org/good")["org/good"]
    assert "answered with status 503" in ill["message"]
    away = client("org/good", HF_ENDPOINT="http://127.0.0.1:9")["org/good"]
    assert "not on this machine and the hub cannot be reached" in away["message"]
    hub.status = 0
    client("org/good")
    hub.status = 503
    assert "parameters" in client("org/good")["org/good"]
    shutil.rmtree(tmp_path / "hub")


def test_where_the_cache_is() -> None:
    assert hub_cache({"HF_HUB_CACHE": "/a"}) == Path("/a")
    assert hub_cache({"HF_HOME": "/b"}) == Path("/b/hub")
    assert hub_cache({"HF_HUB_CACHE": "/a", "HF_HOME": "/b"}) == Path("/a")
    assert hub_cache({"XDG_CACHE_HOME": "/c"}) == Path("/c/huggingface/hub")
    assert hub_cache({}) == Path("~/.cache/huggingface/hub").expanduser()


@pytest.mark.parametrize("ref", ["..", "../x", "a/b/c", "a\0b", "gone/model", ""])
def test_no_snapshot(tmp_path: Path, ref: str) -> None:
    assert find_snapshot(tmp_path, ref) is None
