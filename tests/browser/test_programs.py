"""The pages for programs in a real browser: tokens, webhooks, the API's document, copy as."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.session import Watched
from webapp.accounts.models import User
from webapp.api.services import find_token
from webapp.webhooks.models import Endpoint

pytestmark = pytest.mark.browser


@pytest.fixture
def page(watched: Watched, ada: User) -> Page:
    watched.expected.append("status of 422")  # a form with a fault, where a test sends one
    return watched.signed_in(ada)


def test_a_token_is_made_used_and_revoked(page: Page, shoot: Callable[[Page, str], None]) -> None:
    page.get_by_role("link", name="API tokens").click()
    expect(page.locator("main")).to_contain_text("No program acts for you")
    shoot(page, "tokens-empty")
    page.get_by_role("button", name="Make the token").click()
    expect(page.locator("#token-name-error")).to_contain_text("Say what the token is for")
    page.fill("#token-name", "nightly")
    page.get_by_label("launch").check()
    page.get_by_role("button", name="Make the token").click()
    secret = page.locator("#fresh-secret").inner_text()
    shoot(page, "tokens-fresh")
    token = find_token(secret)
    assert token is not None
    assert token.scopes == ["read", "launch"]
    page.goto("/accounts/tokens/")
    shoot(page, "tokens")
    page.get_by_role("link", name="Revoke").click()
    page.locator("#dialog").get_by_role("button", name="Revoke").click()
    expect(page.locator("main")).to_contain_text("opens nothing any more")
    token.refresh_from_db()
    assert token.state == "revoked"


def test_the_document_page_works_under_the_policy(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/api/v1/docs")
    expect(page.locator("html")).to_have_class("dark-mode")
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_class("")
    expect(page.locator("#swagger-ui")).to_contain_text("Launch a run")
    page.get_by_text("Launch a run").click()
    expect(page.locator("#swagger-ui")).to_contain_text("Needs the scope")


def test_a_webhook_is_made_and_shown(page: Page, shoot: Callable[[Page, str], None]) -> None:
    page.goto("/accounts/webhooks/")
    shoot(page, "webhooks-empty")
    page.fill("#webhook-url", "http://127.0.0.1/x")
    page.get_by_role("button", name="Make the webhook").click()
    expect(page.locator("#webhook-url-error")).to_contain_text("private network")
    page.fill("#webhook-url", "https://example.org/hook")
    page.get_by_role("button", name="Make the webhook").click()
    expect(page.locator("#fresh-secret")).to_contain_text("whsec_")
    shoot(page, "webhooks-fresh")
    page.get_by_role("link", name="Try it").click()
    page.get_by_role("button", name="Send a test").click()
    expect(page.locator("#deliveries")).to_contain_text("waiting")
    shoot(page, "webhook")
    page.get_by_role("link", name="Delete").click()
    page.locator("#dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("main")).to_contain_text("is deleted")
    assert not Endpoint.objects.exists()


def test_a_run_is_copied_as_three_texts(page: Page, shoot: Callable[..., None]) -> None:
    page.goto("/runs/new/?preset=tiny-model")
    page.locator("[id='field-seed']").fill("7")
    page.get_by_role("button", name="Copy as…").click()
    dialog = page.locator("#dialog")
    expect(dialog.locator("#copy-yaml")).to_contain_text("seed: 7")
    shoot(page, "copy-as", full_page=False)
    dialog.get_by_text("Command", exact=True).click()
    expect(dialog.locator("#copy-command")).to_contain_text("temper launch - --preset tiny-model")
    dialog.get_by_text("Python", exact=True).click()
    expect(dialog.locator("#copy-python")).to_contain_text("temper.launch(spec")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Copy as…").click()
    expect(dialog).to_be_visible()
