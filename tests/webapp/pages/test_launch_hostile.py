"""Launch posts that nobody's browser sends: each gets an answer, at its field where it has one."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from django.test import Client
from django.urls import reverse

from tests.webapp.browser_form import submitted
from tests.webapp.pages.test_launch import NEW, form_of, send
from tests.webapp.stories import launch
from training_core.contract import yaml_text
from training_core.contract.presets import TINY_COPY
from training_core.contract.spec import RunSpec
from training_core.contract.yaml_text import spec_to_yaml
from webapp.accounts.models import User
from webapp.runs import services
from webapp.runs.models import Run
from webapp.ui.schema_form.read import read_document

TEXT = spec_to_yaml(TINY_COPY.spec)


def error_at(page: str, path: str) -> str:
    """What stands at a control."""
    return page.split(f'data-error-for="{path}">')[1].split("</p>")[0]


def send_yaml(browser: Client, text: str, action: str = "launch") -> Any:
    return browser.post(
        NEW, {"mode": "yaml", "idempotency_key": "y", "yaml": text, "action": action}
    )


@pytest.mark.parametrize("key", ["k" * 65, "nul\0", "a_b", "奖励", "'; drop", "k\n"])
def test_a_bad_idempotency_key_is_refused_and_replaced(key: str, browser: Client) -> None:
    answer = send(browser, form_of(browser), idempotency_key=key)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "idempotency_key must be" in page
    assert not Run.objects.exists()
    preset = {"preset": TINY_COPY.slug, "idempotency_key": key}
    assert browser.post(reverse("runs:launch_preset"), preset).status_code == 422
    assert not Run.objects.exists()


def test_the_page_of_a_bad_key_launches_at_the_second_try(browser: Client) -> None:
    page = send(browser, form_of(browser), idempotency_key="?" * 100).content.decode()
    start = page.index('<form id="launch"')
    again = submitted(page[start : page.index("</form>", start)])
    assert send(browser, again).status_code == 302


@pytest.mark.parametrize(
    "action",
    [
        "remove:domains.x",
        "remove:domains.99999",
        "remove:domains." + "9" * 5000,
        "remove:domains.-1",
        "remove:domains.²",
        "remove:domains.٠",
        "remove:domains.0.name",
        "remove:domains",
        "remove:",
        "up:domains.x",
        "down:stages.",
        "add:nothing",
        "add:",
        "add:domains.0",
        "add:domains.0:dataset",
        "add:domains.x",
        "add:domains:poem",
        "add:name",
        "add:reward",
        "add:reward.root.terms.x",
        "add:domains.99999.name",
        "become:stages.0:rl",
        "become:domains",
        "become:stages.x:rl",
        "become:a:b:c",
        "become:reward.root:",
        "." * 5000,
        "remove:" + ".".join("a" * 300),
        "\0",
    ],
)
def test_a_malformed_action_is_answered(action: str, browser: Client) -> None:
    answer = browser.post(NEW, {**form_of(browser), "action": action})
    assert answer.status_code == 200
    assert "could not be changed" in answer.content.decode()


@pytest.mark.parametrize("action", ["become:reward", "become:stages.1.optimiser"])
def test_a_pointless_action_is_answered(action: str, browser: Client) -> None:
    assert browser.post(NEW, {**form_of(browser), "action": action}).status_code == 200


@pytest.mark.parametrize(
    "ref",
    [
        "~nosuchuser/x",
        "/" + "x" * 400,
        "/" + "x/" * 240,
        "org/" + "x" * 400,
        "x" * 500,
        "./a\0b",
        "/proc/self/root/root/.ssh",
    ],
)
def test_an_impossible_model_is_told_at_its_field(ref: str, browser: Client) -> None:
    answer = send(browser, form_of(browser), **{"model.ref": ref})
    assert answer.status_code == 422
    assert error_at(answer.content.decode(), "model.ref")
    check = browser.post(reverse("runs:check"), {**form_of(browser), "model.ref": ref})
    assert check.status_code == 200


def deep(depth: int) -> dict[str, Any]:
    """A reward with so many sums around a leaf."""
    node: dict[str, Any] = {"type": "correctness"}
    for _ in range(depth):
        node = {"type": "weighted_sum", "terms": [{"weight": 1, "node": node}]}
    return node


def posted_deep(depth: int) -> dict[str, str]:
    """The same as a form would send it."""
    path, posted = "reward.root", {}
    for _ in range(depth):
        posted[f"{path}.type"] = "weighted_sum"
        posted[f"{path}.terms.0.weight"] = "1"
        path += ".terms.0.node"
    return {**posted, f"{path}.type": "correctness"}


@pytest.mark.parametrize("depth", [9, 19, 20, 21, 150, 250])
def test_a_deep_reward_in_the_form_is_an_error_at_it(depth: int, browser: Client) -> None:
    form = {k: v for k, v in form_of(browser).items() if not k.startswith("reward.")}
    for action in ("launch", "check", "show:yaml", "add:reward.root.terms:length"):
        post = urlencode({**form, **posted_deep(depth), "action": action})
        answer = browser.post(NEW, post, content_type="application/x-www-form-urlencoded")
        page = answer.content.decode()
        assert "Rewards must not be nested more than 8 deep." in page
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("depth", "says"),
    [
        (9, "reward.root"),
        (20, "reward.root"),
        (30, "nested too deeply"),
        (150, "nested too deeply"),
        (900, "nested too deeply"),
    ],
)
def test_a_deep_reward_in_yaml_is_an_error_with_its_place(
    depth: int, says: str, browser: Client
) -> None:
    document = {**yaml.safe_load(TEXT), "reward": {"root": deep(0)}}
    flow = "{type: weighted_sum, terms: [{weight: 1, node: " * depth
    text = yaml.dump(document).replace(
        "    type: correctness", f"    {flow}{{type: correctness}}" + "}]}" * depth
    )
    for action in ("launch", "show:form"):
        page = send_yaml(browser, text, action).content.decode()
        assert says in page
        assert 'name="mode" value="yaml"' in page or depth < 21


@pytest.mark.parametrize(
    "change",
    [
        ("seed: 0", 'seed: 0\n"\\ud800": 1'),
        ("seed: 0", 'seed: 0\n"a\\udfff": {"\\ud800": [1]}'),
        ("spec_version: 1", 'spec_version: 1\nextra: "\\ud800"'),
        ("seed: 0", 'seed: "\\ud800"'),
        ("seed: 0", 'seed: ["\\ud800"]'),
        ("max_digits: ", '"\\ud800": '),
        ("max_digits: ", '"\\0": '),
        ("spec_version: 1", 'spec_version: "\\udc00"'),
    ],
)
@pytest.mark.parametrize("action", ["launch", "check", "show:form", "show:yaml", "add:stages:rl"])
def test_half_a_surrogate_pair_is_an_error_and_the_text_stays(
    change: tuple[str, str], action: str, browser: Client
) -> None:
    text = TEXT.replace(*change, 1)
    assert text != TEXT
    answer = send_yaml(browser, text, action)
    page = answer.content.decode()
    assert answer.status_code == (422 if action == "launch" else 200)
    assert "character" in page
    assert 'name="mode" value="yaml"' in page or "\\0" in page
    assert "\\ud800" in page or "\\udc00" in page or "\\0" in page
    check = {"mode": "yaml", "idempotency_key": "y", "yaml": text}
    assert browser.post(reverse("runs:check"), check).status_code == 200


@pytest.mark.parametrize("value", ["1" + "0" * 400, "-1" + "0" * 400, "1e400", "-1e400", "1e308"])
@pytest.mark.parametrize("path", ["domains.0.weight", "reward.root.terms.0.weight", "seed"])
def test_numbers_beyond_floats_are_errors_at_their_fields(
    value: str, path: str, browser: Client
) -> None:
    answer = send(browser, form_of(browser), **{path: value})
    assert answer.status_code == 422
    assert error_at(answer.content.decode(), path)


def test_a_yaml_text_is_parsed_once(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    class Counted(yaml_text.StrictLoader):
        def __init__(self, text: str) -> None:
            parsed.append(len(text))
            super().__init__(text)

    monkeypatch.setattr(yaml_text, "StrictLoader", Counted)
    text = TEXT.replace("seed: 0", "seed: -1\ncolour: blue").replace("max_digits: 1", "")
    page = send_yaml(browser, text).content.decode()
    assert "data-line=" in page
    assert len([size for size in parsed if size > 1000]) == 1


def test_a_parent_that_is_deleted_meanwhile(
    browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = launch(ada, "Mine")
    posted = form_of(browser, f"{NEW}?from={parent.number}")
    make = services._create_run

    def create(*args: Any) -> Run:
        Run.objects.filter(pk=parent.pk).delete()
        return make(*args)

    monkeypatch.setattr(services, "_create_run", create)
    answer = send(browser, posted)
    assert answer.status_code == 422
    assert "has just been deleted" in answer.content.decode()
    assert not Run.objects.filter(name=posted["name"]).exists()


def test_a_post_of_as_many_fields_as_are_let_in_is_read_once_through() -> None:
    """Each name is looked at once or twice, not once for every other name."""

    class Counted(dict[str, str]):
        looks = 0

        def __iter__(self) -> Any:
            for name in super().__iter__():
                Counted.looks += 1
                yield name

        def items(self) -> Any:
            for pair in super().items():
                Counted.looks += 1
                yield pair

    posted = {f"domains.{i}.{name}": "x" for i in range(2_000) for name in ("type", "name")}
    posted |= {f"domains.{i}.type": "reasoning_gym" for i in range(2_000)}
    posted |= {f"nothing.{i}": "x" for i in range(16_000)}
    document = read_document(RunSpec, Counted(posted))
    assert len(document["domains"]) == 1_001
    assert Counted.looks <= 2 * len(posted)


@pytest.mark.parametrize(
    ("name", "most"), [("domains", 1000), ("stages", 100), ("reward.root.terms", 32)]
)
def test_of_an_endless_list_one_item_too_many_is_drawn(
    name: str, most: int, browser: Client
) -> None:
    tail = ".weight" if name.endswith("terms") else ".type"
    many = {f"{name}.{i}{tail}": "x" for i in range(most + 500)}
    post = urlencode({"name": "x", "reward.root.type": "weighted_sum", **many, "action": "check"})
    page = browser.post(NEW, post, content_type="application/x-www-form-urlencoded").content
    assert f'id="item-{name}.{most}"'.encode() in page
    assert f'id="item-{name}.{most + 1}"'.encode() not in page


def test_a_list_that_the_form_would_cut_stays_yaml(browser: Client) -> None:
    text = TEXT.replace("stages:\n", "stages:\n" + "- {type: rl}\n" * 500)
    page = send_yaml(browser, text, "show:form").content.decode()
    assert 'name="mode" value="yaml"' in page
    assert "Must have at most 100 items." in page
