"""Under plain WSGI there is no WebSocket: the page says that it polls, and stays right."""

from typing import Any

from tests.browser.looking import settled, status, tile
from tests.browser.stage import Stage, wait_until

JOB = {
    "task": "project.shop.tasks.book_delivery",
    "kwargs": {"sku": "cup", "quantity": 1},
    "tags": ["polled"],
    "run_after": "PT1H",
}


def test_the_page_polls_under_plain_wsgi_and_stays_right(page: Any, shop: Stage) -> None:
    client = shop.client
    first = client.post("/jobs/", JOB)["id"]
    page.clock.install()
    with shop.plain_wsgi() as base:
        page.goto(f"{base}/jobqueue/")
        settled(page)
        assert status(page) == "Polling 10 s"
        waiting = wait_until(lambda: tile(page, "Scheduled"), "the overview shows the first")
        client.post("/jobs/", JOB)
        page.clock.fast_forward(10_000)
        wait_until(lambda: tile(page, "Scheduled") == waiting + 1, "and a second by itself")

        page.get_by_role("link", name="Jobs", exact=True).click()
        page.get_by_label("Filter").fill("tag:polled state:any")
        page.keyboard.press("Enter")
        wait_until(lambda: page.locator("tbody tr").count() == 2, "both are listed")
        client.post(f"/jobs/{first}/cancel/", {})
        client.post("/jobs/", JOB)
        page.clock.fast_forward(10_000)
        page.wait_for_selector("tbody tr .badge-cancelled")
        page.wait_for_selector("button.news >> text=1 new job")
        assert status(page) == "Polling 10 s"
