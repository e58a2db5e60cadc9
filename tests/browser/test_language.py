"""The pages and what scripts write on them in Chinese, and the way back."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.session import Watched
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User

pytestmark = pytest.mark.browser

NARROW = {"width": 360, "height": 740}


def choose(page: Page, name: str) -> None:
    """Press the button of a language in the rail, and wait for the page in it."""
    with page.expect_navigation():
        page.get_by_role("button", name=name).click()


def test_a_button_turns_pages_and_scripts_to_chinese_and_back(watched: Watched, ada: User) -> None:
    Story(launch(ada, "Longer warm-up")).start().step(1).step(2)
    page = watched.signed_in(ada)
    expect(page.locator("html")).to_have_attribute("lang", "en")
    choose(page, "简体中文")
    expect(page).to_have_url(f"{watched.url}/runs/")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.locator(".rail-nav")).to_contain_text("数据集")
    page.locator("[data-theme-toggle]").click()
    expect(page.locator("[data-theme-word]")).to_have_text("浅色")
    page.keyboard.press("?")
    expect(page.locator("#keys h2")).to_have_text("键盘")
    expect(page.locator("#keys h3").last).to_have_text("所有页面")
    expect(page.locator("[data-keys-list]")).to_contain_text("打开或按下获得焦点的元素")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette .palette-label").first).not_to_have_text("Do")
    page.keyboard.type("settings")  # English words find things in every language
    expect(page.locator("#palette [role=option]").first).to_contain_text("你的账号")
    page.keyboard.press("Escape")
    page.goto("/runs/1/")
    expect(page.locator("#live .live-word")).to_have_text("实时")
    expect(page.locator(".curves-toolbar")).to_contain_text("平滑")
    expect(page.locator(".chart-foot").first).to_have_text("全部 2 个点")
    choose(page, "English")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator(".curves-toolbar")).to_contain_text("Smoothing")
    expect(page.locator("[data-theme-word]")).to_have_text("light")


def test_the_rail_fits_a_telephone(watched: Watched, ada: User) -> None:
    page = watched.signed_in(ada, viewport=NARROW)
    expect(page.locator("#live .live-word")).to_have_text("live")
    assert sticks_out(page) == []
    choose(page, "简体中文")
    expect(page.locator("#live .live-word")).to_have_text("实时")
    assert sticks_out(page) == []


def sticks_out(page: Page) -> list[str]:
    """What of the rail does not lie on the page, with the longest word of the live channel."""
    page.evaluate("document.querySelector('.live-word').textContent = 'catching up'")
    found = page.locator(".rail-foot button, .rail-foot > a, .rail-nav a").all()
    boxes = [(each.bounding_box(), each.inner_text()) for each in found if each.is_visible()]
    width = page.evaluate("document.documentElement.clientWidth")
    assert len(boxes) > 8
    return [word for box, word in boxes if not box or not 0 <= box["x"] <= width - box["width"]]
