"""What the page shows while workers die: the crash, the recovery, and every job committed once.

The page is opened once and never reloaded. `LIVE_JOBS` (150) is how many jobs there are, and
`LIVE_KILLS` (3) how many workers are killed; 500 and 10 make the long version.
"""

import os
from typing import Any

import pytest

from project.servers import RedisServer
from tests.browser.conftest import DESKTOP, watch_console
from tests.browser.looking import settled, status, tile
from tests.browser.stage import Client, Stage, sign_in, stage, wait_until

JOBS = int(os.environ.get("LIVE_JOBS", "150"))
KILLS = int(os.environ.get("LIVE_KILLS", "3"))
DELIVERY = "project.shop.tasks.book_delivery"
LONG_SECONDS = 240.0


@pytest.mark.parametrize("redis", [True, False], ids=["redis", "no-redis"])
def test_jobs_are_seen_to_be_committed_once_while_workers_are_killed(
    chromium: Any, redis: bool
) -> None:
    if redis and not RedisServer.available():
        pytest.skip("no redis-server or valkey-server on this machine")
    with stage(redis=redis, work_seconds=0.6) as shop:
        shop.start_workers(3, threads=2)
        page = sign_in(chromium, shop, DESKTOP)
        complaints = watch_console(page)
        page.evaluate("window.neverReloaded = true")
        submit_from_the_form(page)
        client = shop.client()
        for number in range(KILLS):
            enqueue(client, share(number))
            watch_a_crash(page, shop, client)
        alive = page.locator(".worker:not(.is-dead)")
        wait_until(lambda: alive.count() >= len(shop.workers), "the dead are replaced")
        if not redis:
            restart_the_web_server(page, shop)
        all_committed_once(page, shop)
        assert page.evaluate("window.neverReloaded") is True
        assert complaints == []


def submit_from_the_form(page: Any) -> None:
    """Submit one job as a person does."""
    page.get_by_role("link", name="Submit a job").click()
    page.get_by_label("sku").fill("teapot")
    page.get_by_label("quantity").fill("2")
    page.get_by_role("button", name="Submit book_delivery").click()
    page.wait_for_selector(".made a")
    page.get_by_role("link", name="Overview", exact=True).click()
    settled(page)


def share(number: int) -> int:
    """Return how many jobs to enqueue before a kill, so that each finds jobs at work."""
    rest = JOBS - 1
    return rest * (number + 1) // KILLS - rest * number // KILLS


def enqueue(client: Client, count: int) -> None:
    """Enqueue jobs over the API."""
    job = {"task": DELIVERY, "kwargs": {"sku": "cup", "quantity": 1}, "tags": ["storm"]}
    client.post("/jobs/batch/", {"jobs": [job] * count})


def watch_a_crash(page: Any, shop: Stage, client: Client) -> None:
    """Kill a worker that holds jobs; the page must show that very one as dead."""
    victim = wait_until(lambda: holder(client), "a worker holds jobs")
    shop.kill_worker(victim["name"])
    dead = page.locator(".worker.is-dead", has_text=str(victim["pid"]))
    dead.wait_for(timeout=30_000)


def holder(client: Client) -> Any:
    """Return a worker that holds jobs."""
    return next((w for w in client.get("/workers/")["results"] if w["running"]), None)


def restart_the_web_server(page: Any, shop: Stage) -> None:
    """Kill the web server; the page says that it is no more live, and comes back by itself."""
    shop.fleet.kill("web")
    wait_until(lambda: status(page) != "Live", "the page notices")
    wait_until(lambda: status(page) == "Live", "the page is live again")


def all_committed_once(page: Any, shop: Stage) -> None:
    """The page ends with all jobs committed, and says what the API and the shop's own table say."""

    def shown() -> bool:
        states = [tile(page, name) for name in ("Ready", "Running", "Retrying", "Dead")]
        return tile(page, "Committed") == JOBS and states == [0, 0, 0, 0]

    wait_until(shown, f"the page shows {JOBS} of {JOBS} committed", LONG_SECONDS)
    assert f"of {JOBS}" in page.locator(".tile", has_text="Committed").inner_text()
    assert tile(page, "Lost, redone") >= 1
    outcomes = shop.client().get("/stats/")["attempts"]["outcomes"]
    assert outcomes["succeeded"] == JOBS
    assert tile(page, "Lost, redone") == outcomes["lost"]
    counted = "from project.shop.models import Delivery as D; print(D.objects.count(), "
    counted += "D.objects.values('job_id').distinct().count())"
    assert shop.manage("shell", "--command", counted).split()[-2:] == [str(JOBS)] * 2
