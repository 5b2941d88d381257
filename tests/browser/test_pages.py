"""Each page can be read by everybody: axe finds nothing, in both themes, and a phone has room."""

from collections.abc import Iterator
from typing import Any

import pytest

from project.pictures.camera import violations
from tests.browser.conftest import DESKTOP
from tests.browser.looking import refusals, settled
from tests.browser.stage import Client, Stage, wait_until

DELIVERY = "project.shop.tasks.book_delivery"
PHONE = (360, 780)


@pytest.fixture(scope="module")
def client(shop: Stage) -> Iterator[Client]:
    """Somebody who has made a job that died, and others, so that pages have something to show.

    A queue is paused meanwhile, by somebody with a long reason: pages have to find room for it.
    """
    client = shop.client
    client.post(
        "/jobs/",
        {"task": DELIVERY, "kwargs": {"sku": "saucer", "quantity": 1}, "tags": ["supplier:1"]},
    )
    client.order(1)
    dead = lambda: client.get("/page/errors/", period=3_600)["results"]  # noqa: E731
    wait_until(dead, "an error group")
    pause = {"paused": True, "reason": "the provider is down, and says that it will be for hours"}
    client.post("/queues/mail/", pause, "PATCH")
    yield client
    client.post("/queues/mail/", {"paused": False}, "PATCH")


def addresses(client: Client) -> list[str]:
    job = client.get("/jobs/", q="state:dead", limit=1)["results"][0]["id"]
    return [
        "",
        "?period=7d&by=queue",
        "jobs",
        "jobs?q=state:dead",
        "jobs?q=sate:dead",
        "jobs?q=queue:nowhere",
        f"jobs/{job}",
        f"jobs/{job}?tab=attempts",
        f"jobs/{job}?tab=payload",
        f"jobs/{job}?tab=log",
        "errors?period=1h",
        "queues",
        "schedules",
        "schedules?edit=new",
        "workers",
        "submit",
        "nowhere",
    ]


def test_axe_finds_nothing_on_any_page_a_phone_has_room_and_all_is_pushed(
    page: Any, shop: Stage, client: Client
) -> None:
    found = []
    refused = refusals(page)
    for address in addresses(client):
        page.goto(f"{shop.base}/jobqueue/{address}")
        settled(page)
        found += [f"{address}: {each}" for each in refused()]
        found += [f"{address}: {each}" for each in violations(page)]
        page.evaluate("document.documentElement.dataset.theme = 'dark'")  # the colors are all new
        found += [f"{address} dark: {each}" for each in violations(page, "color-contrast")]
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{address}: wider than a phone")
        page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    assert found == []


def test_the_theme_is_the_one_that_the_admin_remembers(page: Any, shop: Stage) -> None:
    page.goto(f"{shop.base}/jobqueue/")
    page.evaluate("localStorage.setItem('theme', 'dark')")
    page.reload()
    settled(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Theme: dark. Change it").click()
    assert page.evaluate("localStorage.getItem('theme')") == "auto"


def test_axe_finds_nothing_on_dialogs_and_suggestions(
    page: Any, shop: Stage, client: Client
) -> None:
    page.goto(f"{shop.base}/jobqueue/jobs?q=state:dead")
    settled(page)
    page.get_by_role("button", name="Discard …").first.click()
    page.wait_for_selector(".dry-run")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type(" que")
    page.wait_for_selector("[role=option]")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    assert violations(page) == []
