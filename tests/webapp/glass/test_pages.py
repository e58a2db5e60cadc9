"""The pages of a step under glass in every state, and who may do what on them."""

from __future__ import annotations

import shutil

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse

from tests.webapp.glass.steps import FIELDS, ask, claim, fail, finish, make_result, show
from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.stories import Story, launch
from training_core.contract.glass import DomainPrompt, GlassProgress
from webapp.accounts.models import Membership, Project, Role, User
from webapp.glass.access import get_own_glass_step, glass_project
from webapp.glass.models import GlassStep
from webapp.glass.subjects import find_subject
from webapp.runs.models import Checkpoint

pytestmark = pytest.mark.django_db
INDEX = "/glass/"
TINY = {**FIELDS, "model": "base:tiny", "domain": "numbers/copy"}


def page(browser: Client, step: GlassStep, name: str = "glass:detail") -> str:
    answer = browser.get(reverse(name, args=[step.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def checkpoint(ada: User) -> Checkpoint:
    """One in the middle of the rl stage of a run (60 steps of warm-up, 60 of rl)."""
    story = Story(launch(ada)).start().step(61).checkpoint(61, best=True)
    return Checkpoint.objects.get(run=story.run)


def test_the_empty_page_says_what_to_do(browser: Client) -> None:
    text = browser.get(INDEX).content.decode()
    assert "No step has been taken yet" in text
    assert "Take the step" in text
    assert 'value="base:smollm2-135m-instruct" selected' in text
    assert "keeps_moments" not in text, "a base model has no moments to keep"


def test_the_newest_checkpoint_is_offered_first(browser: Client, checkpoint: Checkpoint) -> None:
    text = browser.get(INDEX).content.decode()
    assert f'value="checkpoint:{checkpoint.pk}" selected' in text
    assert "(best)" in text
    assert 'name="keeps_moments"' in text


def test_the_form_asks_for_a_step_of_a_base_model(browser: Client) -> None:
    answer = browser.post(INDEX, TINY)
    step = GlassStep.objects.get()
    assert answer.headers["Location"] == reverse("glass:detail", args=[step.pk])
    spec = step.read_spec()
    assert isinstance(spec.prompt, DomainPrompt)
    assert (spec.model.ref, spec.prompt.domain.name, spec.prompt.index) == (
        "tiny",
        "numbers/copy",
        3,
    )
    stage = spec.stage
    assert (stage.steps, stage.prompts_per_step, stage.group_size) == (1, 1, 4)
    assert (stage.sampling.max_new_tokens, stage.optimiser.learning_rate) == (16, 1e-3)
    assert not spec.keeps_moments


def test_the_form_asks_for_a_step_of_a_checkpoint(browser: Client, checkpoint: Checkpoint) -> None:
    fields = {**TINY, "model": f"checkpoint:{checkpoint.pk}", "keeps_moments": "on"}
    browser.post(INDEX, fields)
    step = GlassStep.objects.get()
    assert (step.run, step.checkpoint) == (checkpoint.run, checkpoint)
    assert step.read_spec().checkpoint == checkpoint.path
    assert step.read_spec().keeps_moments
    held = claim(step)
    assert held.run_dir == checkpoint.run.directory


def test_moments_go_on_only_inside_the_rl_stage(ada: User, checkpoint: Checkpoint) -> None:
    def has_moments(step: int) -> bool:
        Checkpoint.objects.update(step=step)
        return find_subject(ada, f"checkpoint:{checkpoint.pk}").has_moments

    assert [has_moments(step) for step in (59, 60, 61, 119, 120)] == [
        False,
        False,
        True,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("group_size", "1", "greater than or equal to 2"),
        ("group_size", "33", "less than or equal to 32"),
        ("max_new_tokens", "100000", "less than or equal to 256"),
        ("temperature", "0", "greater than or equal to 0.05"),
        ("temperature", "nan", "Enter a number"),
        ("learning_rate", "-1", "greater than or equal to 0"),
        ("learning_rate", "1e400", "Enter a number"),
        ("seed", "4294967296", "less than or equal to"),
        ("domain", "nowhere", "not one of the available choices"),
        ("index", "x", "Enter a whole number"),
    ],
)
def test_a_wrong_field_is_told_at_the_field(
    browser: Client, field: str, value: str, words: str
) -> None:
    answer = browser.post(INDEX, {**TINY, field: value})
    assert answer.status_code == 422
    text = answer.content.decode()
    at = text.index(f'id="id_{field}-error"')
    assert words in text[at : at + 200]
    assert 'aria-invalid="true"' in text
    assert not GlassStep.objects.exists()


def test_ones_own_prompt_needs_a_turn_and_an_answer_that_the_rewards_can_use(
    browser: Client,
) -> None:
    own = {**TINY, "kind": "own", "question": " ", "answer": "Paris", "index": "hidden"}
    text = browser.post(INDEX, own).content.decode()
    assert "Write the prompt that the model shall complete." in text
    assert "The reward &#x27;correctness&#x27; cannot use this answer" in text
    assert "Enter a whole number" not in text, "the number is hidden and means nothing here"
    assert browser.post(INDEX, {**own, "question": "7 + 8 = ?", "answer": "15"}).status_code == 302


def test_a_model_that_is_not_there_is_not_found(browser: Client) -> None:
    for key in ("base:nothing", "checkpoint:999", "checkpoint:x", "x"):
        assert browser.get(INDEX, {"model": key}).status_code == 404


def test_a_checkpoint_that_was_removed_is_not_offered(
    browser: Client, checkpoint: Checkpoint
) -> None:
    Checkpoint.objects.update(removed_at=checkpoint.created_at)
    assert f"checkpoint:{checkpoint.pk}" not in browser.get(INDEX).content.decode()
    key = f"checkpoint:{checkpoint.pk}"
    assert browser.get(INDEX, {"model": key}).status_code == 404


def test_a_waiting_step_says_for_what_it_waits(browser: Client, ada: User) -> None:
    text = page(browser, ask(ada))
    assert "It waits for a slot" in text
    assert 'hx-trigger="every 1s, temper:glass"' in text
    assert 'id="do-cancel"' in text


def test_a_running_step_shows_its_completions_grow(browser: Client, ada: User) -> None:
    step = ask(ada)
    claim(step)
    assert "Starting the process" in page(browser, step, "glass:live")
    show(step, "sample", 1, "<answer>1", "15", "", "I th")
    text = page(browser, step, "glass:live")
    assert "Sampling completions" in text
    assert "1 of 4" in text
    assert "&lt;answer&gt;1" in text
    assert "What is 7 + 8?" in text


def test_a_model_that_is_fetched_counts_its_megabytes(browser: Client, ada: User) -> None:
    step = ask(ada)
    claim(step)
    step.directory.write_progress(GlassProgress(phase="load", done=3, total=269))
    text = page(browser, step, "glass:live")
    assert "Fetching the model from the hub" in text
    assert "3 of 269" in text
    step.directory.write_progress(GlassProgress(phase="load", done=269, total=269))
    assert "Loading the model" in page(browser, step, "glass:live")


def test_a_step_that_is_done_tells_the_whole_story(browser: Client, ada: User) -> None:
    text = page(browser, finish(ask(ada)))
    assert 'hx-trigger="every' not in text
    for words in (
        "Rewards become advantages",
        "A of completion 0 = (1 − 0.325) / (0.4717 + 1e-6) = +1.431",
        "ρ = 1 for every token",
        "nothing is clipped",
        "g is scaled by 1 / 1.73",
        "AdamW begins with fresh moments",
        "training_core/losses/advantages.py:20",
        "A_i = (r_i - mean_g) / (std_g + eps)",
        "KL ≈ 0.0123 nats a token",
    ):
        assert words in text, words
    assert 'class="token up-4' in text
    assert 'class="token down-' in text
    assert "p 0.8187 → " in text


def test_the_loss_of_the_page_is_the_loss_of_training(browser: Client, ada: User) -> None:
    result = make_result()
    text = page(browser, finish(ask(ada), result))
    total = sum((one.advantage or 0) * len(one.token_ids) for one in result.completions)
    assert f"= {-total / result.divisor_tokens:.4g}".replace("-", "−") in text


def test_a_dead_group_says_why_nothing_moves(browser: Client, ada: User) -> None:
    text = page(browser, finish(ask(ada), make_result((0.3, 0.3, 0.3, 0.3))))
    assert "This group teaches nothing." in text
    assert "All rewards are 0.300" in text
    assert "a gradient of 0 moves no weight" in text
    listed = browser.get(INDEX).content.decode()
    assert "all rewards equal: taught nothing" in listed


def test_a_dead_group_that_moves_by_its_moments_says_so(browser: Client, ada: User) -> None:
    result = make_result((0.3,) * 4, weights_moved=12, weight_change=0.1, optimiser_steps=5)
    text = page(browser, finish(ask(ada), result))
    assert "12 weights moved: by the moments of earlier steps" in text


def test_a_group_without_any_reward_is_dead_for_another_reason(browser: Client, ada: User) -> None:
    text = page(browser, finish(ask(ada), make_result((None, None, None, None))))
    assert "No completion has a reward" in text
    assert "unscored: left out" in text


def test_a_gradient_that_is_not_finite_is_named(browser: Client, ada: User) -> None:
    result = make_result(grad_norm=float("nan"), kl=float("nan"))
    text = page(browser, finish(ask(ada), result))
    assert "The gradient is not finite, so the step was left out" in text


def test_a_failed_step_says_why_and_what_next(browser: Client, ada: User) -> None:
    step = fail(ask(ada), "bad_model", "The checkpoint cannot be read.", "Choose another one.")
    text = page(browser, step)
    for words in ("The checkpoint cannot be read.", "Choose another one.", "something broke"):
        assert words in text


def test_a_result_whose_file_is_gone_says_so(browser: Client, ada: User) -> None:
    step = finish(ask(ada))
    shutil.rmtree(step.directory.root)
    assert "The file with the result is gone" in page(browser, step)
    assert browser.get(reverse("glass:result", args=[step.pk])).status_code == 404
    assert browser.get(reverse("glass:tokens", args=[step.pk, 0])).status_code == 404


def test_the_table_of_tokens(browser: Client, ada: User) -> None:
    step = finish(ask(ada))
    table = browser.get(reverse("glass:tokens", args=[step.pk, 0])).content.decode()
    assert table.count("<tr>") == 1 + len(make_result().completions[0].pieces)
    assert "&lt;an" in table
    assert browser.get(reverse("glass:tokens", args=[step.pk, 4])).status_code == 404


def test_the_result_can_be_taken_away(browser: Client, ada: User) -> None:
    step = finish(ask(ada))
    answer = browser.get(reverse("glass:result", args=[step.pk]))
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert b"".join(answer.streaming_content) == step.directory.result_file.read_bytes()  # type: ignore[attr-defined]


def test_texts_of_models_and_people_are_harmless(browser: Client, ada: User) -> None:
    texts = tuple(f"{name}\x00\x1b[31m" for name in NAMES)
    rewards = tuple(float(place % 2) for place in range(len(texts)))
    step = finish(ask(ada, kind="own", question=NAMES[1], answer="7"), make_result(rewards, texts))
    claimed = ask(ada)
    claim(claimed)
    show(claimed, "sample", 0, *texts)
    for text in (page(browser, step), page(browser, claimed), browser.get(INDEX).content.decode()):
        for markup in RAW_MARKUP:
            assert markup not in text


def test_cancel_and_delete(browser: Client, ada: User) -> None:
    step = ask(ada)
    browser.post(reverse("glass:delete", args=[step.pk]))
    assert GlassStep.objects.filter(state="waiting").exists()
    browser.post(reverse("glass:cancel", args=[step.pk]))
    assert "Cancelled by ada before a worker had it." in page(browser, step)
    browser.post(reverse("glass:delete", args=[step.pk]))
    assert not GlassStep.objects.exists()


def test_a_viewer_looks_and_does_not_touch(client: Client, ada: User) -> None:
    step = finish(ask(ada))
    viewer = User.objects.create_user("vera")
    Membership.objects.filter(user=viewer).update(role=Role.VIEWER)
    client.force_login(viewer)
    text = client.get(INDEX).content.decode()
    assert "You may look" in text
    assert str(step.pk) in text
    assert "Delete" not in page(client, step)
    assert client.post(INDEX, TINY).status_code == 403
    assert client.post(reverse("glass:delete", args=[step.pk])).status_code == 403


def test_a_step_of_another_project_does_not_exist(client: Client, ada: User, bob: User) -> None:
    other = Project.objects.create(slug="other", name="Other")
    step = finish(ask(ada))
    GlassStep.objects.update(project=other)
    client.force_login(bob)
    assert client.get(reverse("glass:detail", args=[step.pk])).status_code == 404
    assert str(step.pk) not in client.get(INDEX).content.decode()


def test_a_step_goes_where_its_run_is(ada: User, bob: User, checkpoint: Checkpoint) -> None:
    other = Project.objects.create(slug="other", name="Other")
    Membership.objects.create(project=other, user=bob, role=Role.VIEWER)
    checkpoint.run.project = other
    checkpoint.run.save(update_fields=["project"])
    subject = find_subject(bob, f"checkpoint:{checkpoint.pk}")
    assert subject.project == other
    with pytest.raises(PermissionDenied, match="needs the right to launch"):
        glass_project(bob, subject.project)


def test_others_do_not_end_ones_step(ada: User, bob: User) -> None:
    with pytest.raises(PermissionDenied, match="ada asked for this step"):
        get_own_glass_step(bob, ask(ada).pk)


def test_the_checkpoints_of_a_run_lead_here(browser: Client, checkpoint: Checkpoint) -> None:
    text = browser.get(f"/runs/{checkpoint.run.number}/checkpoints/").content.decode()
    assert f"/glass/?model=checkpoint:{checkpoint.pk}" in text
