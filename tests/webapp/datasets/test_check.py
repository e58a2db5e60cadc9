"""The check page of a dataset: proposals, known replies, prompts, tryouts in each state, launch."""

from __future__ import annotations

import re
import shutil

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.glass.steps import claim, fail
from tests.webapp.glass.tryouts import (
    BARE,
    RIGHT,
    WRONG,
    ask_tryout,
    finish_tryout,
    grow,
    thought_of,
    version_of,
)
from tests.webapp.hostile import NAMES, RAW_MARKUP
from training_core.contract.presets import TEACH_SMOLLM2_TO_ADD, TINY_COPY
from webapp.accounts.models import User
from webapp.audit.models import AuditEntry
from webapp.datasets import dispatch as dataset_dispatch
from webapp.datasets.models import DatasetVersion
from webapp.glass import dispatch as glass_dispatch
from webapp.glass.models import GlassStep
from webapp.runs import dispatch as run_dispatch
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db
SUMS = [str(n + 7) for n in range(40)]
WORDS = [("Red", "Green", "Blue")[n % 3] for n in range(40)]


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (dataset_dispatch, glass_dispatch, run_dispatch):
        monkeypatch.setattr(module, "send_task", lambda *_: True)


@pytest.fixture
def version(ada: User) -> DatasetVersion:
    return version_of(ada, SUMS)


def address(version: DatasetVersion) -> str:
    return reverse("datasets:check", args=[version.pk])


def read(browser: Client, version: DatasetVersion, **query: str) -> str:
    answer = browser.get(address(version), query)
    assert answer.status_code == 200
    return answer.content.decode()


def fields(version: DatasetVersion, **changes: str) -> dict[str, str]:
    """The form as it opens, with changes."""
    page = thought_of(version)
    found = {name: str(value) for name, value in page.form.initial.items()}
    return {**found, "preset": page.preset.slug, "idempotency_key": "key-1", **changes}


def test_everything_is_proposed_with_its_reason(browser: Client, version: DatasetVersion) -> None:
    text = read(browser, version)
    for words in (
        "smollm2-135m-instruct, as in “Teach SmolLM2 to add” (proposed)",
        "Not every answer can be copied from a short prompt",
        "Reward: correctness, since the answers are numbers.",
        "Prompts are from the column <code>prompt</code>",
        'value="dataset/mine"',
        "at most 3 times",
        "<span>ready</span>",
        "Not asked yet",
        "answer 32 times",
    ):
        assert words in text, words
    assert text.count('class="record panel"') == 5
    assert text.count("check-reply-right") == 3
    assert "check-reply-odd" not in text
    assert "Reply with the number inside &lt;answer&gt;" in text, "prompts are shown as rendered"


def test_words_are_proposed_to_be_compared_as_words(browser: Client, ada: User) -> None:
    text = read(browser, version_of(ada, WORDS))
    assert '<option value="words" selected>' in text
    assert "3 choices: " in text
    assert "check-reply-odd" not in text


def test_what_can_be_copied_is_proposed_to_the_tiny_model(browser: Client, ada: User) -> None:
    version = version_of(ada, SUMS, prompt="say {answer}")
    page = thought_of(version)
    assert page.preset == TINY_COPY
    assert "Each answer stands in its prompt" in page.why_preset
    assert page.spec is not None
    assert page.spec.model.ref == "tiny"
    assert page.spec.domains[0].system_prompt == "", "it knows no words"
    assert page.form.initial["max_new_tokens"] == 32, "bytes, with the tags"
    assert page.launchable_spec is not None
    other = read(browser, version, preset=TEACH_SMOLLM2_TO_ADD.slug)
    assert "You chose another one." in other
    assert "Reply with the number" in other


def test_the_form_says_what_is_wrong_at_the_field(browser: Client, version: DatasetVersion) -> None:
    wrong = {"domain": "Not This!", "rl_steps": "0", "max_new_tokens": "many", "name": ""}
    answer = browser.post(address(version), fields(version, action="launch", **wrong))
    assert answer.status_code == 422
    text = answer.content.decode()
    for name, words in (
        ("domain", "Lower-case words joined by /"),
        ("rl_steps", "greater than or equal to 1"),
        ("max_new_tokens", "Enter a whole number"),
        ("name", "This field is required"),
    ):
        at = text.index(f'id="id_{name}-error"')
        assert words in text[at : at + 200]
    assert "4 to mend" in text
    assert not Run.objects.exists()


def test_a_reward_that_cannot_use_the_answers_is_an_error_and_is_shown_by_rows(
    browser: Client, ada: User
) -> None:
    version = version_of(ada, [f"word {n}" for n in range(40)])
    answer = browser.post(address(version), fields(version, reward="numbers", action="try"))
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "cannot use most answers of mine v1" in text
    assert "check-reply-odd" in text
    assert "is no number" in text or "not a number" in text
    assert not GlassStep.objects.exists()


def test_a_look_is_a_fragment_that_follows_the_form(
    browser: Client, version: DatasetVersion
) -> None:
    posted = fields(version, action="look", system_prompt="Just the number.", warm_up_steps="0")
    answer = browser.post(address(version), posted, headers={"HX-Request": "true"})
    text = answer.content.decode()
    assert "<html" not in text
    assert text.count("Just the number.") == 5 + 1, "in each prompt and in the YAML"
    assert 'id="check-prompts" hx-swap-oob="innerHTML"' in text
    assert "Without a warm-up stage" in text
    whole = browser.post(address(version), posted).content.decode()
    assert "<html" in whole


def test_one_answer_for_all_rows_is_told(browser: Client, ada: User) -> None:
    assert "one reply is always right" in read(browser, version_of(ada, ["7"] * 20))


def test_asking_the_base_model_makes_one_tryout(browser: Client, version: DatasetVersion) -> None:
    posted = fields(version, action="try", system_prompt="Mine.", rl_steps="9")
    first = browser.post(address(version), posted)
    again = browser.post(address(version), posted)
    step = GlassStep.objects.get()
    assert first.headers["Location"] == again.headers["Location"]
    assert first.headers["Location"] == f"{address(version)}?tryout={step.pk}#base"
    spec = step.read_tryout()
    assert (len(spec.records), spec.tries) == (8, 4)
    assert {record.split for record in spec.records} == {"train"}, "held-out rows stay unseen"
    assert spec.domain.system_prompt == "Mine."
    assert spec.sampling.temperature == 1.0, "as training samples"
    assert step.project == version.dataset.project
    assert AuditEntry.objects.filter(action="tryout.ask").count() == 1
    browser.post(address(version), {**posted, "system_prompt": "Other."})
    assert GlassStep.objects.count() == 2, "the same key with other settings is another tryout"
    text = read(browser, version, tryout=str(step.pk))
    assert "Mine." in text
    assert 'name="rl_steps" value="9"' in text, "the form opens as it was tried"
    assert "Asked before" in text


def test_launching_twice_makes_one_run_and_it_is_the_one_that_was_shown(
    browser: Client, version: DatasetVersion
) -> None:
    posted = fields(version, action="launch", warm_up_steps="0", rl_steps="3", name="My run")
    answers = [browser.post(address(version), posted) for _ in range(2)]
    run = Run.objects.get()
    assert {a.headers["Location"] for a in answers} == {f"/runs/{run.number}/"}
    spec = run.read_spec()
    assert [stage.type for stage in spec.stages] == ["rl"]
    assert (spec.name, spec.total_steps) == ("My run", 3)
    assert spec.domains[0].content_hash == version.content_hash  # type: ignore[union-attr]
    assert run.project == version.dataset.project
    assert run.preset == "", "it is not the preset as it stands"


def test_all_settings_opens_the_launch_form_with_the_same_values(
    browser: Client, version: DatasetVersion
) -> None:
    page = browser.post(address(version), fields(version, rl_steps="5")).content.decode()
    yaml = re.search(r'<textarea name="yaml" hidden>\n(.*?)</textarea>', page, re.DOTALL)
    assert yaml
    posted = {"mode": "yaml", "dataset": str(version.pk), "preset": "teach-smollm2-to-add"}
    text = yaml[1].replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')
    posted |= {"yaml": text.replace("&#x27;", "'"), "action": "show:form"}
    form = browser.post(reverse("runs:launch"), posted).content.decode()
    assert 'name="stages.1.steps" value="5"' in form
    assert 'aria-pressed="true">Form' in form


def test_a_waiting_tryout_says_for_what_it_waits(
    browser: Client, ada: User, version: DatasetVersion
) -> None:
    step = ask_tryout(ada, version)
    text = read(browser, version, tryout=str(step.pk))
    assert "It waits for a slot" in text
    assert 'hx-trigger="every 1s, temper:glass"' in text
    assert 'id="do-cancel"' in text
    assert browser.get(reverse("glass:detail", args=[step.pk])).headers["Location"] == (
        f"{address(version)}?tryout={step.pk}"
    )
    assert str(step.pk) not in browser.get("/glass/").content.decode()


def live(browser: Client, step: GlassStep) -> str:
    return browser.get(reverse("glass:live", args=[step.pk])).content.decode()


def test_a_running_tryout_shows_its_completions_grow(
    browser: Client, ada: User, version: DatasetVersion
) -> None:
    step = ask_tryout(ada, version)
    claim(step)
    text = live(browser, step)
    assert "Starting the process" in text
    assert text.count("skeleton") == 32
    grow(step, "<answer>1", "I th")
    text = live(browser, step)
    assert "Sampling completions" in text
    assert "part 2 of 3" in text
    assert "&lt;answer&gt;1" in text
    assert text.count("skeleton") == 30


@pytest.mark.parametrize(
    ("kinds", "title", "words"),
    [
        (
            (BARE,),
            "The base model never solves it",
            (
                "0 of 32 tries on 8 rows",
                "without a warm-up all rewards of a group are equal",
                "of warm-up, which shows it the form",
                "32 of 32 tries were cut at 16 tokens",
            ),
        ),
        ((WRONG,), "The base model never solves it", ("is never right", "easier rows or a larger")),
        (
            (RIGHT, BARE, BARE, BARE),
            "The base model solves 25.0 % of its tries",
            ("In 8 of 8 rows the rewards of the tries differ", "shows it the form first"),
        ),
        (
            (RIGHT, RIGHT, WRONG, RIGHT),
            "The base model solves 75.0 % of its tries",
            ("the warm-up may be short, or left out",),
        ),
        (
            (RIGHT,),
            "The base model solves nearly all of it already",
            ("Little is left to learn here",),
        ),
    ],
)
def test_what_the_share_of_passes_means(
    browser: Client,
    ada: User,
    version: DatasetVersion,
    kinds: tuple[str, ...],
    title: str,
    words: tuple[str, ...],
) -> None:
    step = finish_tryout(ask_tryout(ada, version), *kinds)
    text = live(browser, step)
    assert "hx-trigger" not in text
    assert title in text
    for each in words:
        assert each in text, each
    assert "95 % sure" in text
    assert "As the model reads it, 17 tokens" in text
    listed = read(browser, version)
    assert f"{step.summary['pass_at_1'] * 100:.1f} % of tries solved" in listed


def test_a_tryout_without_a_warm_up_says_that_one_is_needed(
    browser: Client, ada: User, version: DatasetVersion
) -> None:
    browser.post(address(version), fields(version, action="try", warm_up_steps="0"))
    step = finish_tryout(GlassStep.objects.get(), BARE)
    assert "put steps into “Warm-up”" in live(browser, step)


def test_what_was_tried_under_other_settings_is_told(
    browser: Client, ada: User, version: DatasetVersion
) -> None:
    step = finish_tryout(ask_tryout(ada, version), RIGHT)
    assert "asked under other settings" not in read(browser, version, tryout=str(step.pk))
    posted = fields(version, tryout=str(step.pk), system_prompt="Another.")
    assert "asked under other settings" in browser.post(address(version), posted).content.decode()
    steps = fields(version, tryout=str(step.pk), rl_steps="3")
    text = browser.post(address(version), steps).content.decode()
    assert "asked under other settings" not in text, "the base knows nothing of steps"


def test_a_failed_tryout_says_why_and_what_next(
    browser: Client, ada: User, version: DatasetVersion
) -> None:
    step = fail(ask_tryout(ada, version), "bad_data", "A prompt has 9,000 tokens.", "Leave it out.")
    text = live(browser, step)
    for words in ("A prompt has 9,000 tokens.", "Leave it out.", "something broke"):
        assert words in text


def test_cancel_and_delete(browser: Client, ada: User, version: DatasetVersion) -> None:
    step = ask_tryout(ada, version)
    browser.post(reverse("glass:cancel", args=[step.pk]))
    text = read(browser, version, tryout=str(step.pk))
    assert "Cancelled by ada before a worker had it." in text
    answer = browser.post(reverse("glass:delete", args=[step.pk]))
    assert answer.headers["Location"] == address(version)
    assert not GlassStep.objects.exists()
    deeds = AuditEntry.objects.filter(kind="tryout").order_by("pk").values_list("action", flat=True)
    assert list(deeds) == ["tryout.ask", "tryout.cancel", "tryout.delete"]
    assert browser.get(address(version), {"tryout": str(step.pk)}).status_code == 404


def test_a_result_whose_file_is_gone_says_so(
    browser: Client, ada: User, version: DatasetVersion
) -> None:
    step = finish_tryout(ask_tryout(ada, version), RIGHT)
    shutil.rmtree(step.directory.root)
    assert "The file with the result is gone" in live(browser, step)


def test_a_tryout_of_an_unknown_form_is_told(
    browser: Client, ada: User, version: DatasetVersion
) -> None:
    step = finish_tryout(ask_tryout(ada, version), RIGHT)
    GlassStep.objects.update(spec={"kind": "tryout", "spec_version": 9})
    text = read(browser, version, tryout=str(step.pk))
    assert "of a form that this version does not know" in text


def test_a_tryout_outlives_its_version(browser: Client, ada: User, version: DatasetVersion) -> None:
    step = finish_tryout(ask_tryout(ada, version), RIGHT)
    version.delete()
    assert browser.get(reverse("glass:detail", args=[step.pk])).status_code == 404
    assert browser.get(reverse("glass:result", args=[step.pk])).status_code == 200


def test_texts_of_models_and_files_are_harmless(browser: Client, ada: User) -> None:
    hostile = [f"{name}{n}" for n, name in enumerate(NAMES * 3)]
    version = version_of(ada, hostile, name=NAMES[1], prompt=NAMES[0] + " {i}")
    done = finish_tryout(ask_tryout(ada, version), *(f"{name}\x00\x1b[31m" for name in NAMES))
    running = ask_tryout(ada, version, "other")
    claim(running)
    grow(running, *NAMES)
    for text in (
        read(browser, version),
        read(browser, version, tryout=str(done.pk)),
        live(browser, running),
    ):
        for markup in RAW_MARKUP:
            assert markup not in text


def test_rows_too_long_to_show_are_left_out(browser: Client, ada: User) -> None:
    version = version_of(ada, SUMS, prompt="{i} " + "long " * 5000)
    text = read(browser, version)
    assert "more than 20,000 characters" in text
    assert "Ask the base model</button>" not in text
    answer = browser.post(address(version), fields(version, action="try"))
    assert answer.status_code == 422
    assert not GlassStep.objects.exists()
