"""The launch page: presets, form, YAML, errors at their fields, and no run twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.browser_form import submitted
from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.stories import Story, launch
from training_core.contract.presets import PRESETS, TINY_COPY
from training_core.contract.stages import RlStage
from training_core.contract.yaml_text import parse_yaml, spec_to_yaml
from webapp.accounts.models import User
from webapp.runs import disk
from webapp.runs.models import Run
from webapp.runs.origins import next_name

NEW = "/runs/new/"
TINY = f"{NEW}?preset={TINY_COPY.slug}"


def form_of(browser: Client, address: str = TINY) -> dict[str, str]:
    """What a browser would send from the page as it opens."""
    page = browser.get(address).content.decode()
    start = page.index('<form id="launch"')
    return submitted(page[start : page.index("</form>", start)])


def send(browser: Client, posted: dict[str, str], **changes: str) -> Any:
    return browser.post(NEW, {**posted, "action": "launch", **changes})


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.slug)
def test_a_preset_is_launched_without_scripts(preset: Any, browser: Client) -> None:
    page = browser.get(NEW).content.decode()
    assert preset.title in page
    answer = browser.post(
        reverse("runs:launch_preset"), {"preset": preset.slug, "idempotency_key": "k1"}
    )
    run = Run.objects.get()
    assert answer.headers["Location"] == reverse("runs:detail", args=[run.number])
    assert (run.preset, run.state) == (preset.slug, "queued")
    assert run.read_spec() == preset.spec


def test_the_form_as_it_opens_launches_what_it_shows(browser: Client) -> None:
    assert send(browser, form_of(browser)).status_code == 302
    run = Run.objects.get()
    assert run.read_spec() == TINY_COPY.spec
    assert run.preset == TINY_COPY.slug


def test_a_double_click_is_one_run(browser: Client) -> None:
    posted = form_of(browser)
    first, second = send(browser, posted), send(browser, posted)
    assert first.headers["Location"] == second.headers["Location"]
    assert Run.objects.count() == 1
    send(browser, form_of(browser))
    assert Run.objects.count() == 2


CASES = [
    ("stages.1.steps", "0", "Must be at least 1; got 0."),
    ("stages.1.steps", "many", "Must be a whole number; got &#x27;many&#x27;."),
    ("stages.1.group_size", "1", "Must be at least 2; got 1."),
    ("stages.1.optimiser.learning_rate", "-1", "Must be at least 0"),
    ("stages.1.optimiser.learning_rate", "", "Must be a number"),
    ("stages.1.algorithm.clip_low", "1.5", "Must be at most 1"),
    ("stages.1.algorithm.dual_clip", "1.1", "Must be above 1 + clip_high."),
    ("stages.0.name", "Warm Up", "Must be lower-case letters, digits, _ and -"),
    ("domains.0.weight", "nan", "finite"),
    ("domains.0.params", "max_digits: 1\nbogus: 3", "bogus"),
    ("domains.0.params", "a: b: c", "Must be a group of named values"),
    ("domains.0.generator", "no_such_generator", "no_such_generator"),
    ("reward.root.terms.0.weight", "1e9", "Must be at most 1,000"),
    ("evaluation.success_reward", "beauty", "No reward is named"),
    ("evaluation.max_new_tokens", "8", "Must be at least the stages"),
    ("model.ref", "/no/such/folder", "no model that this server can read"),
    ("name", "", "Must not be empty."),
    ("name", "nul \0", "NUL"),
    ("seed", "2147483648", "Must be below 2,147,483,648"),
]


@pytest.mark.parametrize(("path", "value", "says"), CASES)
def test_an_error_stands_at_its_field(path: str, value: str, says: str, browser: Client) -> None:
    answer = send(browser, form_of(browser), **{path: value})
    assert answer.status_code == 422
    page = answer.content.decode()
    places = page.split(f'data-error-for="{path}">')[1:]
    named = [part.split("</p>")[0] for part in places]
    assert any(says in text for text in named), named
    assert not Run.objects.exists()


def test_an_error_of_a_whole_list_stands_at_the_list(browser: Client) -> None:
    page = send(browser, form_of(browser), **{"stages.0.name": "rl"}).content.decode()
    place = page.split('data-error-for="stages">')[1].split("</p>")[0]
    assert "rl is used twice" in place


@pytest.mark.parametrize(("path", "value", "says"), CASES)
def test_yaml_names_the_same_error_with_its_line(
    path: str, value: str, says: str, browser: Client
) -> None:
    posted = form_of(browser)
    shown = browser.post(NEW, {**posted, path: value, "action": "show:yaml"}).content.decode()
    start = shown.index('id="yaml-faults"')
    faults = shown[start : shown.index("</div>", start)]
    assert says in faults
    assert "data-line=" in faults


def test_form_to_yaml_to_form_keeps_an_edit(browser: Client) -> None:
    posted = form_of(browser)
    turned = browser.post(
        NEW, {**posted, "stages.1.group_size": "16", "action": "show:yaml"}
    ).content.decode()
    yaml = submitted(turned)["yaml"]
    document = parse_yaml(yaml.replace("\r\n", "\n"))
    assert document["stages"][1]["group_size"] == 16
    edited = yaml.replace("group_size: 16", "group_size: 4")
    back = browser.post(
        NEW, {**submitted(turned), "yaml": edited, "action": "show:form"}
    ).content.decode()
    assert submitted(back)["stages.1.group_size"] == "4"
    assert submitted(back)["idempotency_key"] == posted["idempotency_key"]


def test_yaml_is_launched_as_it_stands(browser: Client) -> None:
    posted = {"mode": "yaml", "idempotency_key": "y1", "yaml": spec_to_yaml(TINY_COPY.spec)}
    assert send(browser, posted).status_code == 302
    assert Run.objects.get().read_spec() == TINY_COPY.spec


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Expected a mapping"),
        ("a: [1", "Line "),
        ("name: x\nname: y", "stands twice"),
        ("a: &x 1\nb: *x", "aliases"),
        ("name: x\nlearning_rat: 1", "Did you mean"),
        ("x" * 400_001, "longer than"),
        ("!!python/object:os.system {}", "Line "),
    ],
)
def test_bad_yaml_stays_yaml_and_says_why(text: str, says: str, browser: Client) -> None:
    posted = {"mode": "yaml", "idempotency_key": "y", "yaml": text, "action": "show:form"}
    page = browser.post(NEW, posted).content.decode()
    assert 'name="mode" value="yaml"' in page
    assert says in page


def test_a_part_that_the_form_cannot_show_is_never_lost(browser: Client) -> None:
    text = spec_to_yaml(TINY_COPY.spec).replace("seed: 0", "seed: 0\ncolour: blue")
    posted = {"mode": "yaml", "idempotency_key": "y", "yaml": text, "action": "show:form"}
    page = browser.post(NEW, posted).content.decode()
    assert "The form cannot show this text yet" in page
    assert "colour: blue" in page


def test_structure_buttons_with_and_without_scripts(browser: Client) -> None:
    posted = form_of(browser)
    action = {"action": "add:reward.root.terms:length"}
    page = browser.post(NEW, {**posted, **action}).content.decode()
    assert "<html" in page
    assert submitted(page)["reward.root.terms.2.node.type"] == "length"
    part = browser.post(NEW, {**posted, **action}, headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()
    shown = json.loads(part.headers["HX-Trigger-After-Swap"])
    assert shown == {"temper:show": {"path": "reward.root.terms.2"}}


def test_becoming_another_reward_by_its_select(browser: Client) -> None:
    posted = form_of(browser)
    page = browser.post(
        NEW, {**posted, "action": "become:reward.root", "become:reward.root": "format"}
    ).content.decode()
    assert submitted(page)["reward.root.type"] == "format"


def test_a_change_that_makes_no_sense_says_so(browser: Client) -> None:
    page = browser.post(NEW, {**form_of(browser), "action": "remove:stages.77"}).content.decode()
    assert "could not be changed" in page


def test_the_preflight_counts(browser: Client) -> None:
    answer = browser.post(reverse("runs:check"), form_of(browser))
    page = answer.content.decode()
    sft, rl = TINY_COPY.spec.stages
    assert isinstance(rl, RlStage)
    rollouts = rl.steps * rl.prompts_per_step * rl.group_size
    assert f"{sft.steps} SFT + {rl.steps} RL" in page
    assert f"<dd>{rollouts:,}</dd>" in page
    assert f"up to {rollouts * rl.sampling.max_new_tokens:,}" in page
    assert "No worker takes runs now" in page


def test_the_preflight_warns_and_lists_changes(browser: Client) -> None:
    changes = {"stages.1.optimiser.learning_rate": "0", "stages.1.shuffle_rewards": "true"}
    page = browser.post(reverse("runs:check"), {**form_of(browser), **changes}).content.decode()
    assert "the learning rate is 0" in page
    assert "rewards are shuffled" in page
    assert "2 changes against" in page
    assert "stages.1.shuffle_rewards" in page


def test_a_full_disk_refuses_before_anything_is_made(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "problem_with_space", lambda *_: "The disk is full. Free some.")
    answer = send(browser, form_of(browser))
    assert answer.status_code == 422
    assert "The disk is full. Free some." in answer.content.decode()
    assert not Run.objects.exists()


def test_a_clone_opens_with_the_runs_own_spec(browser: Client, ada: User) -> None:
    run = launch(ada, "Mine")
    posted = form_of(browser, f"{NEW}?from={run.number}")
    assert posted["name"] == "Mine (2)"
    send(browser, posted)
    child = Run.objects.get(parent=run)
    assert child.read_spec().stages == run.read_spec().stages


def test_names_of_clones_count_up() -> None:
    assert next_name("a") == "a (2)"
    assert next_name("a (9)") == "a (10)"
    assert len(next_name("x" * 120)) == 120


def test_a_restart_goes_on_from_the_checkpoint(browser: Client, ada: User) -> None:
    story = Story(launch(ada, "Mine")).start()
    story.step(20, "warm-up").checkpoint(20)
    story.finish("failed", "crash", "It crashed.")
    checkpoint = story.run.checkpoints.get()
    address = f"{NEW}?checkpoint={checkpoint.pk}"
    posted = form_of(browser, address)
    assert posted["name"] == "Mine from step 20"
    first, second = send(browser, posted), send(browser, posted)
    assert first.headers["Location"] == second.headers["Location"]
    child = Run.objects.get(parent=story.run)
    assert (child.parent_checkpoint, child.step) == (checkpoint, 20)


def test_a_restart_with_another_model_is_refused_at_the_field(browser: Client, ada: User) -> None:
    story = Story(launch(ada, "Mine")).start()
    story.checkpoint(20)
    posted = form_of(browser, f"{NEW}?checkpoint={story.run.checkpoints.get().pk}")
    page = send(browser, posted, **{"model.ref": "smollm2-135m-instruct"}).content.decode()
    place = page.split('data-error-for="model.ref">')[1].split("</p>")[0]
    assert "keep that model" in place


@pytest.mark.parametrize(
    "query", ["?preset=none", "?from=99", "?from=x", "?checkpoint=1", "?checkpoint=-1"]
)
def test_an_origin_that_is_not_there(query: str, browser: Client) -> None:
    assert browser.get(NEW + query).status_code == 404


def test_nonsense_posts_are_answered(browser: Client) -> None:
    assert browser.post(NEW, {}).status_code == 422
    assert browser.post(NEW, {"mode": "yaml"}).status_code == 422
    assert browser.post(reverse("runs:check"), {"stages.0.type": "x"}).status_code == 200
    assert browser.post(reverse("runs:launch_preset"), {"preset": "x"}).status_code == 404
    assert browser.get(reverse("runs:check")).status_code == 405


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_live_through_form_and_yaml(name: str, browser: Client) -> None:
    posted = form_of(browser)
    page = browser.post(NEW, {**posted, "name": name, "action": "show:yaml"}).content.decode()
    assert not [raw for raw in RAW_MARKUP if raw in page]
    text = submitted(page)["yaml"].replace("\r\n", "\n")
    assert parse_yaml(text)["name"] == name
    assert send(browser, {**posted, "name": name}).status_code == 302
    assert Run.objects.get().name == name


@pytest.mark.parametrize(
    ("algorithm", "fields"),
    [
        ("dapo", {"clip_high": "0.28", "overlong_frac": "0.2", "dynamic_sampling": "true"}),
        ("gspo", {"clip_low": "0.0003", "clip_high": "0.0004", "ratio": "sequence"}),
        (
            "rloo",
            {
                "divergence.coefficient": "0.05",
                "divergence.estimator": "k1",
                "divergence.place": "reward",
            },
        ),
    ],
)
def test_an_algorithm_brings_its_own_settings(
    algorithm: str, fields: dict[str, str], browser: Client
) -> None:
    """Those of the algorithm before it, epsilons above all, do not stay behind."""
    place = "stages.1.algorithm"
    changed = {
        **form_of(browser),
        f"{place}.clip_high": "0.5",
        "action": f"become:{place}",
        f"become:{place}": algorithm,
    }
    found = submitted(browser.post(NEW, changed).content.decode())
    assert found[f"{place}.type"] == algorithm
    assert {name: found[f"{place}.{name}"] for name in fields} == fields
    browser.post(NEW, {**found, "action": "launch"})
    (_, stage) = Run.objects.get().read_spec().stages
    assert stage.algorithm == type(stage.algorithm)()
    assert stage.algorithm.type == algorithm
