"""A script whose session has ended hears a 401 and not the sign-in page."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("address", ["/", "/runs/", "/workers/", "/search/", "/runs/1/phase/"])
def test_scripts_are_told_and_people_are_led(address: str, client: Client) -> None:
    told = client.get(address, headers={"HX-Request": "true"})
    assert (told.status_code, told.content.decode()) == (
        401,
        "You are signed out. Reload the page to sign in.",
    )
    led = client.get(address)
    assert led.status_code == 302
    assert led.headers["Location"].startswith("/accounts/login/?next=")
