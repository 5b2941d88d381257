"""What the page shows while workers die: the crash, the recovery, and every job committed once.

The page is opened once and never reloaded. `LIVE_JOBS` (72) is how many jobs there are, and
`LIVE_KILLS` (2) how many workers are killed; 500 and 10 make the long version. On its way the web
server is killed, too.
"""

import os
from typing import Any

import pytest

from project.servers import RedisServer
from tests.browser.conftest import DESKTOP, watch_console
from tests.browser.looking import parts_in_words, settled, status, tile
from tests.browser.stage import Client, Stage, signed_in, stage, wait_until

JOBS = int(os.environ.get("LIVE_JOBS", "72"))
KILLS = int(os.environ.get("LIVE_KILLS", "2"))
DELIVERY = "project.shop.tasks.book_delivery"
AGAIN = "Interrupted, run again"
LONG_SECONDS = 60.0 + JOBS

COMMITTED = "SELECT count(*) FROM jobqueue_job WHERE state = 'succeeded'"
DELIVERED = f"{COMMITTED} AND task = '{DELIVERY}'"
BOOKED = "SELECT count(*), count(DISTINCT job_id) FROM shop_delivery"


@pytest.mark.skipif(not RedisServer.available(), reason="no redis-server or valkey-server here")
def test_jobs_are_seen_to_be_committed_once_while_workers_are_killed(
    page: Any, shop: Stage
) -> None:
    storm(page, shop)


def test_they_are_without_redis_and_while_the_web_server_is_killed(chromium: Any) -> None:
    with stage(redis=False, work_seconds=0.4) as shop:
        shop.start_workers(2)
        page = signed_in(chromium, shop, DESKTOP)
        complaints = watch_console(page)
        storm(page, shop, kill_web=True)
        assert complaints == []
        page.context.close()


def storm(page: Any, shop: Stage, *, kill_web: bool = False) -> None:
    """Enqueue jobs and kill what works on them; the page, never reloaded, must tell the truth."""
    page.goto(f"{shop.base}/jobqueue/")
    settled(page)
    page.evaluate("window.neverReloaded = true")
    submit_from_the_form(page)
    client = shop.client
    for number in range(KILLS):
        enqueue(client, share(number))
        watch_a_crash(page, shop, client)
        if kill_web and number == KILLS // 2:
            restart_the_web_server(page, shop)
    alive = page.locator(".worker:not(.is-dead, .is-stopped)")
    wait_until(lambda: alive.count() >= len(shop.workers), "the dead are replaced")
    all_committed_once(page, shop, client)
    assert page.evaluate("window.neverReloaded") is True


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


def all_committed_once(page: Any, shop: Stage, client: Client) -> None:
    """The page ends with all jobs committed, and says what the API and the shop's own table say."""
    quiet = lambda: all(tile(page, name) == 0 for name in ("Ready", "Running", "Retrying"))  # noqa: E731
    wait_until(quiet, "the page shows that nothing waits or runs", LONG_SECONDS)
    wait_until(lambda: not live(client), "the API says so, too")
    (committed,), (delivered,) = shop.ask(COMMITTED), shop.ask(DELIVERED)
    assert shop.ask(BOOKED) == (delivered, delivered)
    assert delivered >= JOBS
    assert client.get("/jobs/", q="tag:storm state:dead,cancelled")["results"] == []
    wait_until(lambda: tile(page, "Committed") == committed, f"the page shows {committed}")
    lost = client.get("/stats/")["attempts"]["outcomes"]["lost"]
    assert lost >= 1
    wait_until(lambda: tile(page, AGAIN) == lost, f"the page shows {lost} interrupted")
    waiting = tile(page, "Scheduled") + tile(page, "Blocked")
    assert parts_in_words(page) == [committed, 0, waiting, tile(page, "Dead")]


def live(client: Client) -> Any:
    """Return jobs that have yet to be committed."""
    return client.get("/jobs/", q="tag:storm state:live")["results"]
