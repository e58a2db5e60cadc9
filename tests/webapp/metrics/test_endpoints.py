from __future__ import annotations

import base64
import csv
import io
import json
import math
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client

from webapp.accounts.models import User
from webapp.evaluation.models import EvalRun
from webapp.metrics.services import MetricPoint, append_points, supersede_after
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db
NAMES = [
    "loss",
    "val-aux/gsm8k/reward/mean@1",
    "a//b",
    "/lead",
    "trail/",
    "..",
    "100%",
    " a b ",
    "<b>x</b>",
    "<img src=x onerror=1>",
    "$latex$",
    "{{ 7*7 }}",
    "'; drop table",
    "=1+1",
    "奖励/正确率",
    "مكافأة",
    "👩‍👩‍👧",
    "k" * 255,
]


@pytest.fixture
def client(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


def log(run: Run, values: list[float], key: str = "loss", first: int = 1) -> None:
    points = [MetricPoint(first + i, 1.7e9 + i, {key: v}) for i, v in enumerate(values)]
    append_points(run.pk, 1, points)


def get(client: Client, run: Run, **params: Any) -> dict[str, Any]:
    response = client.get("/api/runs/curves", {"run": str(run.pk), "key": "loss", **params})
    assert response.status_code == 200, response.content
    document: dict[str, Any] = json.loads(response.content, parse_constant=refuse)
    return document


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def array(document: dict[str, Any], place: int) -> list[float]:
    found: list[float] = np.frombuffer(base64.b64decode(document["arrays"][place]), "<f8").tolist()
    return found


def test_every_bit_of_a_value_reaches_the_browser(client: Client, run: Run) -> None:
    odd = [0.1, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.797e308]
    log(run, odd)
    document = get(client, run)
    (curve,) = document["curves"]
    y = array(document, curve["line"]["y"])
    assert [v.hex() for v in y] == [v.hex() for v in odd]
    assert curve["nonfinite"] == [[1, "nan"], [2, "inf"], [3, "-inf"]]
    assert (curve["n_total"], curve["n_drawn"], curve["exact"]) == (7, 7, True)
    assert document["metrics"]["loss"]["direction"] == "none"


def test_equal_arrays_are_sent_once(client: Client, run: Run) -> None:
    for key in ("reward", "loss"):
        log(run, [7.0, 8.0], key)
    document = get(client, run, key=["reward", "loss"])
    assert len(document["arrays"]) == 2
    assert [curve["key"] for curve in document["curves"]] == ["reward", "loss"]


def test_a_delta_has_only_what_is_new_and_is_small(client: Client, run: Run) -> None:
    log(run, [float(i) for i in range(1000)])
    first = get(client, run, smooth="0.6")
    assert get(client, run, since=first["cursor"], smooth="0.6")["curves"] == []
    log(run, [5.0], first=1001)
    news = get(client, run, since=first["cursor"], smooth="0.6")
    (curve,) = news["curves"]
    assert (curve["mode"], array(news, curve["line"]["x"])) == ("append", [1001.0])
    assert len(json.dumps(news)) < 1200


def test_an_unchanged_curve_is_not_sent_again(client: Client, run: Run) -> None:
    log(run, [1.0])
    url = f"/api/runs/curves?run={run.pk}&key=loss"
    etag = client.get(url)["ETag"]
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 304
    assert client.get(f"{url}&budget=9", headers={"If-None-Match": etag}).status_code == 200
    log(run, [2.0], first=2)
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 200


@pytest.mark.parametrize(
    ("field", "params"),
    [
        ("run", {"run": "x"}),
        ("run", {"run": []}),
        ("key", {"key": []}),
        ("x", {"x": "sideways"}),
        ("budget", {"budget": "3"}),
        ("budget", {"budget": "1e3"}),
        ("budget", {"budget": "²"}),
        ("budget", {"budget": "0000001500"}),
        ("budget", {"budget": "000001500" + "0" * 9}),
        ("budget", {"budget": "000001500" + "0" * 5000}),
        ("key", {"key": "\0"}),
        ("key", {"key": ["loss", "lo\0ss"]}),
        ("key", {"key": "k" * 256}),
        ("smooth", {"smooth": "1" + "0" * 5000}),
        ("from", {"from": "9" * 5000}),
        ("smooth", {"smooth": "1"}),
        ("smooth", {"smooth": "-0.1"}),
        ("from", {"from": "nan"}),
        ("to", {"from": "2", "to": "1"}),
        ("since", {"since": "1.2"}),
        ("since", {"since": "-1"}),
        ("since", {"since": "1", "to": "5"}),
        ("superseded", {"superseded": "yes"}),
    ],
)
def test_a_bad_parameter_is_named(
    client: Client, run: Run, field: str, params: dict[str, Any]
) -> None:
    for path in ("curves", "curves.csv", "curves.json"):
        response = client.get(f"/api/runs/{path}", {"run": str(run.pk), "key": "loss", **params})
        assert response.status_code == 400
        assert response.json()["error"]["field"] == field
        assert response.json()["error"]["message"]


def test_strangers_get_a_401_and_unknown_runs_a_404(client: Client, run: Run) -> None:
    urls = [f"/api/runs/curves?run={run.pk}&key=loss", f"/api/runs/{run.pk}/keys"]
    urls += [
        url.replace("curves?", f"curves.{end}?") for end in ("csv", "json") for url in urls[:1]
    ]
    for url in [*urls, "/live/news?topics=runs", "/live/events?topics=runs"]:
        assert Client().get(url).status_code == 401
    for url in [*urls, f"/live/news?topics=run:{run.pk}", f"/live/events?topics=run:{run.pk}"]:
        assert client.get(url.replace(str(run.pk), str(uuid4()))).status_code == 404
    assert Client().get(f"/runs/{run.number}/report.html").status_code == 302
    assert client.get("/runs/999/report.html").status_code == 404


def test_keys_come_in_sections_with_units_and_markers(client: Client, run: Run) -> None:
    names = ["time/step", "eval/pass@1", "reward", "rewards/correctness/mean", "zebra/x", "loss"]
    for name in names:
        log(run, [1.0], name)
    supersede_after(run.pk, 2, 7)
    run.spec = {
        "stages": [{"type": "sft", "name": "warm-up", "steps": 8}, {"name": "rl", "steps": 5}]
    }
    run.save()
    evaluate(run, step=4)
    document = client.get(f"/api/runs/{run.pk}/keys").json()
    slugs = [section["slug"] for section in document["sections"]]
    assert slugs == ["eval", "reward", "rewards", "optimisation", "time", "other-zebra"]
    first = document["sections"][0]["keys"][0]
    assert (first["key"], first["unit"], first["headline"]) == (
        "eval/pass@1",
        "share of items",
        True,
    )
    assert [(s["name"], s["step"]) for s in document["marks"]["stages"]] == [
        ("warm-up", 0),
        ("rl", 8),
    ]
    assert document["marks"]["attempts"] == [{"attempt": 2, "step": 7}]
    (interval,) = document["marks"]["evaluations"]["eval/pass@1"]
    assert (interval["low"], interval["high"]) == (0.2, 0.4)
    assert "domain/math/eval/reward" in document["marks"]["evaluations"]


def evaluate(run: Run, step: int) -> None:
    interval = {"value": 0.3, "low": 0.2, "high": 0.4, "n": 96}
    result = {"domain": "all", "pass_at_1": interval, "reward": interval, "components": {}}
    EvalRun.objects.create(
        run=run,
        attempt=1,
        seq=step,
        step=step,
        label="interval",
        title=f"step {step}",
        recipe="r",
        seconds=1.0,
        results=[result, {**result, "domain": "math"}],
        at="2026-01-01T00:00:00Z",
    )


def test_csv_holds_exactly_what_is_drawn(client: Client, run: Run) -> None:
    log(run, [1.5, math.nan, -math.inf, 2.5])
    text = client.get(
        f"/api/runs/curves.csv?run={run.pk}&key=loss&smooth=0.6&x=wall"
    ).content.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["value"] for row in rows] == ["1.5", "nan", "-inf", "2.5"]
    assert rows[0]["time"] == "2023-11-14T22:13:20+00:00"
    assert [row["step"] for row in rows] == ["1", "2", "3", "4"]
    assert float(rows[3]["smoothed_0.6"]) == pytest.approx((0.6 * 1.5 + 2.5) / 1.6)


def test_json_says_how_much_of_the_curve_it_is(client: Client, run: Run) -> None:
    log(run, [float(i) for i in range(100)] + [math.inf])
    response = client.get(f"/api/runs/curves.json?run={run.pk}&key=loss&budget=20")
    (curve,) = json.loads(response.content, parse_constant=refuse)["curves"]
    assert (curve["points_in_window"], curve["every_point"]) == (101, False)
    assert curve["points"][-1]["value"] == "inf"
    assert len(curve["points"]) == curve["points_here"]


def test_a_spreadsheet_takes_no_name_for_a_formula(
    client: Client, make_run: Callable[..., Run]
) -> None:
    run = make_run(name="=HYPERLINK(1)")
    log(run, [1.0], "=1+1")
    text = client.get(f"/api/runs/curves.csv?run={run.pk}&key=%3D1%2B1").content.decode()
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["run_name"], row["metric"]) == ("'=HYPERLINK(1)", "'=1+1")


@pytest.mark.parametrize("name", NAMES)
def test_any_name_passes_through_every_endpoint(client: Client, run: Run, name: str) -> None:
    log(run, [1.0, 2.0], name)
    assert get(client, run, key=name)["curves"][0]["key"] == name
    (section,) = client.get(f"/api/runs/{run.pk}/keys").json()["sections"]
    assert [known["key"] for known in section["keys"]] == [name]
    for ending in ("csv", "json"):
        response = client.get(f"/api/runs/curves.{ending}", {"run": str(run.pk), "key": name})
        assert response.status_code == 200
        disposition = response["Content-Disposition"]
        assert re.fullmatch(r'attachment; filename="[a-zA-Z0-9.-]+"', disposition)


@pytest.mark.django_db(transaction=True)
def test_the_report_is_one_file_that_needs_no_network(
    user: User, make_run: Callable[..., Run]
) -> None:
    run = make_run(name="<script>alert(1)</script>", spec={"notes": "a < b"})
    log(run, [1.0, math.nan, 3.0], "<img src=x onerror=1>")
    log(run, [float(i) for i in range(4000)], "loss")
    evaluate(run, step=1)
    log(run, [0.3], "eval/pass@1")

    async def download() -> str:
        client = AsyncClient()
        await client.aforce_login(user)
        response = await client.get(f"/runs/{run.number}/report.html")
        assert response.status_code == 200
        return b"".join([piece async for piece in response.streaming_content]).decode()

    text = async_to_sync(download)()
    assert text.count('class="plotly-graph-div"') == 3
    assert "<script>alert(1)" not in text
    assert "<img src=x" not in text
    assert re.search(r"\([\d,]+ of 4,000 points, extremes exact\)", text)
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"https?://|<(script|img|link|iframe)", markup)
    assert text.rstrip().endswith("</html>")
