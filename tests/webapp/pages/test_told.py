"""What programs say of a run, on pages in Chinese: known sentences translated, others as said."""

from __future__ import annotations

import re
import signal

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.control.attempts import WORKER_LOST
from webapp.runs.models import Run
from webapp.runs.overview import title_words
from webapp.runs.services import pause_run, resume_run, stop_run
from webapp.runs.told import told
from workers.exit_words import judge_exit

CHINESE = {"Accept-Language": "zh-CN"}
ENGLISH_WORDS = re.compile(r"[A-Za-z]+ [A-Za-z]+ [A-Za-z]+")


def in_chinese(message: str) -> str:
    with translation.override("zh-hans"):
        return told(message)


@pytest.mark.parametrize("code", [-signal.SIGSEGV, 0, 3])
def test_how_a_trainer_ended_is_known(code: int) -> None:
    verdict = judge_exit(code, "last words it had", killed_for=None, was_out_of_memory=False)
    said = in_chinese(verdict.message)
    assert not ENGLISH_WORDS.search(said.splitlines()[0])
    assert said.endswith("last words it had")
    assert "Its last lines" not in said
    assert not ENGLISH_WORDS.search(in_chinese(verdict.advice))


@pytest.mark.parametrize("code", [-signal.SIGTERM, -signal.SIGKILL])
def test_how_a_trainer_was_ended_is_known(code: int) -> None:
    verdict = judge_exit(code, "", killed_for="stop", was_out_of_memory=False)
    assert not ENGLISH_WORDS.search(in_chinese(verdict.message))


def test_what_may_follow_is_translated_too() -> None:
    whole = f"{WORKER_LOST.message} It goes on from step 40."
    assert in_chinese(whole) == "它的工作进程没有响应，也没有恢复。 它会从第 40 步继续。"
    odd = "Some error nobody foresaw. Given up after 3 attempts without a new checkpoint."
    assert in_chinese(odd).startswith("Some error nobody foresaw. 在 3 次")


def test_what_is_not_known_stays_as_it_was_said() -> None:
    for message in ("", "ValueError: 100 % of <b>it</b>", "two\nlines", "Stopped by"):
        assert in_chinese(message) == message


def test_english_is_not_touched() -> None:
    assert told("Stopped by ada.\nIts last lines:\nx") == "Stopped by ada.\nIts last lines:\nx"


def test_titles_of_evaluations() -> None:
    titles = ("base model", "final", "step 40", "after warm-up", "my own")
    assert [title_words(title) for title in titles] == list(titles)
    with translation.override("zh-hans"):
        assert [title_words(title) for title in titles] == [
            "基座模型",
            "最终模型",
            "第 40 步",
            "阶段 warm-up 之后",
            "my own",
        ]


def test_rows_hold_english_and_pages_show_chinese(browser: Client, ada: User) -> None:
    run = launch(ada)
    for deed, stored, shown in (
        (pause_run, "Paused by ada.", "由 ada 暂停。"),
        (resume_run, "Resumed by ada.", ""),
        (stop_run, "Stopped by ada.", "由 ada 停止。"),
    ):
        with translation.override("zh-hans"):
            deed(run, ada)
        run = Run.objects.get(pk=run.pk)
        assert run.message == stored
        page = browser.get(reverse("runs:detail", args=[run.number]), headers=CHINESE).text
        assert shown in page
        assert stored not in page


def test_a_page_of_a_run_in_chinese(browser: Client, ada: User) -> None:
    story = Story(launch(ada)).start()
    story.evaluate(0, "start", "base model", 0.04)
    run = story.step(61).phase(62, "rollout", 18, 32, tokens_per_s=212.4).run
    page = browser.get(reverse("runs:detail", args=[run.number]), headers=CHINESE).text
    assert "第 62 步：正在生成：18 / 32 采样轨迹" in page
    assert "基座模型" in page
    assert "已停止" not in page
