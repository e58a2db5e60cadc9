"""Charts and the report in the reader's language; files of curves and the API in English."""

from __future__ import annotations

import json
import re

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client

from webapp.accounts.models import User
from webapp.metrics.services import MetricPoint, append_points
from webapp.runs.models import Run

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def log(run: Run, *names: str) -> None:
    append_points(run.pk, 1, [MetricPoint(1, 1.7e9, dict.fromkeys(names, 1.0))])


def curves(client: Client, run: Run, ending: str = "", etag: str = "") -> tuple[int, str, str]:
    answer = client.get(
        f"/api/runs/curves{ending}",
        {"run": str(run.pk), "key": "eval/pass@1"},
        headers={"If-None-Match": etag} if etag else {},
    )
    return answer.status_code, answer.headers.get("ETag", ""), answer.content.decode()


@pytest.mark.django_db
def test_charts_read_the_language_of_the_page(client: Client, user: User, run: Run) -> None:
    client.force_login(user)
    log(run, "eval/pass@1", "system/rss", "zebra")
    _, etag, english = curves(client, run)
    assert json.loads(english)["metrics"]["eval/pass@1"]["unit"] == "share of items"
    client.cookies["temper_language"] = "zh-hans"
    status, _, chinese = curves(client, run, etag=etag)
    assert status == 200, "an answer in another language is another answer"
    facts = json.loads(chinese)["metrics"]["eval/pass@1"]
    assert CHINESE.search(facts["unit"])
    assert CHINESE.search(facts["meaning"])
    found = client.get(f"/api/runs/{run.pk}/keys").json()["sections"]
    assert [bool(CHINESE.search(section["title"])) for section in found] == [True, True, False]
    memory = found[1]["keys"][0]
    assert memory["unit"] == "bytes", "scripts compute with this one"
    assert found[2]["keys"][0]["meaning"] == ""
    assert "share of items" in curves(client, run, ".json")[2]
    assert curves(client, run, ".csv")[2].startswith("run,run_name,metric,step,time,value")


@pytest.mark.django_db(transaction=True)
def test_the_report_is_in_the_language_of_who_asked(user: User, run: Run) -> None:
    log(run, "eval/pass@1")

    async def download() -> str:
        client = AsyncClient()
        await client.aforce_login(user)
        client.cookies["temper_language"] = "zh-hans"
        answer = await client.get(f"/runs/{run.number}/report.html")
        return b"".join([piece async for piece in answer.streaming_content]).decode()

    text = async_to_sync(download)()
    assert '<html lang="zh-hans">' in text
    markup = re.sub(r"<(script|style|pre|code).*?</\1>|<[^>]*>", "", text, flags=re.DOTALL)
    assert not re.search(r"[A-Za-z]{2,} [a-z]{2,}", markup), "a sentence is left in English"
    assert re.search(r"<figcaption>[^<]*\u70b9", text)
    assert "\\u5360\\u9898\\u76ee\\u7684\\u6bd4\\u4f8b" in text or "占题目的比例" in text
