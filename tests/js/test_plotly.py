from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from csp.utils import build_policy
from playwright.sync_api import Browser

from tests.js.chromium import in_browser
from tests.js.conftest import POLICY, ROOT

VENDOR = ROOT / "static/vendor/plotly"


def test_the_vendored_files_are_the_published_ones() -> None:
    for line in (VENDOR / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    assert "MIT" in (VENDOR / "LICENSE").read_text()
    head = (VENDOR / "plotly-basic.min.js").read_text()[:99]
    assert "plotly.js (basic - minified) v4.1.1" in head


def test_the_tests_use_the_sites_policy() -> None:
    directives = {
        part.split()[0]: set(part.split()[1:]) for part in build_policy(nonce="x").split("; ")
    }
    for part in filter(None, map(str.strip, POLICY.split(";"))):
        name, *sources = part.split()
        assert directives[name] == set(sources)


@in_browser
def test_plotly_draws_forty_panels_without_a_complaint(
    chromium: Browser, static_address: str
) -> None:
    page = chromium.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(static_address)
    pictures = page.evaluate(
        """async () => {
          const { loadPlotly } = await import("/static/js/charts/plotly.js");
          const Plotly = await loadPlotly();
          const x = Float64Array.from({ length: 200 }, (_, i) => i);
          const y = x.map((v) => Math.sin(v / 9));
          for (let i = 0; i < 40; i += 1) {
            const box = document.createElement("div");
            document.body.append(box);
            const band = { x, y, fill: "tonexty" };
            await Plotly.react(box, [{ x, y }, band], { hovermode: "x unified" },
                               { displayModeBar: false });
            Plotly.Fx.hover(box, [{ curveNumber: 0, pointNumber: 5 }]);
          }
          const box = document.querySelector(".js-plotly-plot");
          return [await Plotly.toImage(box, { format: "png" }),
                  await Plotly.toImage(box, { format: "svg" })].map((url) => url.slice(0, 15));
        }"""
    )
    assert pictures == ["data:image/png;", "data:image/svg+"]
    assert page.locator(".js-plotly-plot .main-svg").count() >= 80
    assert complaints == []
    page.close()


@pytest.mark.parametrize("script", sorted((ROOT / "static/js").rglob("*.js")), ids=lambda p: p.name)
def test_no_script_builds_markup_or_code_from_text(script: Path) -> None:
    """innerHTML of server fragments aside, which live in static/js/ui and pages."""
    text = script.read_text()
    if script.parent.name in {"charts", "live"}:
        for word in ("innerHTML", "insertAdjacentHTML", "eval(", "new Function", "document.write"):
            assert word not in text
