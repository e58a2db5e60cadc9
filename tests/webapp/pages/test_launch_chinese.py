"""Launching in Chinese: the page and its errors are translated, what is stored is not."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.pages.test_launch import NEW, form_of, send
from training_core.contract.presets import PRESETS, TEACH_SMOLLM2_TO_ADD
from webapp.audit.models import AuditEntry
from webapp.runs.models import Run, RunEvent

HAN = range(0x4E00, 0xA000)


def has_chinese(text: object) -> bool:
    return any(ord(sign) in HAN for sign in str(text))


@pytest.fixture
def reader(browser: Client) -> Client:
    browser.cookies["temper_language"] = "zh-hans"
    return browser


def test_cards_of_presets_are_translated(reader: Client) -> None:
    page = reader.get(NEW).text
    assert "教 SmolLM2 做加法" in page
    for preset in PRESETS:
        assert preset.teaches not in page
        assert preset.expect not in page


def test_a_launch_stores_english(reader: Client) -> None:
    slug = TEACH_SMOLLM2_TO_ADD.slug
    reader.post(reverse("runs:launch_preset"), {"preset": slug, "idempotency_key": "k"})
    send(reader, form_of(reader, f"{NEW}?from={Run.objects.get().number}"))
    send(reader, form_of(reader, f"{NEW}?model=a/b"))
    names = list(Run.objects.order_by("number").values_list("name", flat=True))
    assert names == ["Teach SmolLM2 to add", "Teach SmolLM2 to add (2)", "On b"]
    for stored in (Run, RunEvent, AuditEntry):
        rows = list(stored.objects.values())
        assert rows
        assert not has_chinese(rows)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model.ref": "x y"}, "不是模型"),
        ({"model.ref": "/no/such/folder"}, "不是此服务器能读取的模型"),
        ({"evaluation.success_reward": "beauty"}, "没有名为"),
        ({"evaluation.max_new_tokens": "1"}, "否则评测会截断训练中允许的补全"),
        ({"stages.1.name": "warm-up"}, "名称 warm-up 重复使用"),
        ({"stages.1.steps": "0"}, "必须不小于 1"),
        ({"notes": "a\0b"}, "NUL"),
        ({"idempotency_key": "?" * 80}, "idempotency_key 最多包含 64 个"),
        ({"project": "nonsense"}, "你不能在所选的项目中启动"),
        ({"action": "remove:x.y"}, "表单中没有 x.y"),
    ],
)
def test_errors_are_translated(changes: dict[str, str], says: str, reader: Client) -> None:
    page = send(reader, form_of(reader), **changes).text
    assert says in page
    assert Run.objects.count() == 0


def test_warnings_of_the_preflight_are_translated(reader: Client) -> None:
    changes = {
        "stages.1.optimiser.learning_rate": "0",
        "stages.1.group_size": "2",
        "stages.1.shuffle_rewards": "true",
        "evaluation.at_start": "false",
        "reward.root.terms.0.weight": "0",
    }
    page = reader.post(reverse("runs:check"), {**form_of(reader), **changes}).text
    notes = page.split('note-warn">')[1:]
    assert len(notes) == 5
    assert all(map(has_chinese, notes))
    assert "与预设“" in page
