"""python -m tests.browser.screens [FOLDER]: pictures of the live page, at work and under kill -9.

README's is of `make demo`, at its end; the table of that very run is printed, to stand above it.
For the others a shop with some failures gets orders and deliveries all the time, while its workers
are killed. Pictures go to docs/images, or to FOLDER. Exits 2 where there is no browser.
"""

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests

from project.demo.plan import PROCESSES, SUPERVISORS
from project.pictures.camera import browser, missing
from tests.browser.demo_run import demo_run
from tests.browser.looking import parts_in_words
from tests.browser.stage import ROOT, Client, Stage, signed_in, stage, wait_until

DELIVERY = "project.shop.tasks.book_delivery"
ARTICLES = (*("teapot", "cup", "kettle", "tea-tin") * 8, "saucer")
"""The last is an article that the shop has not: its job gives up."""
LOAD_SECONDS = 125.0
KILL_SECONDS = 5.0
DESKTOP, TALL, FLAT, PHONE = (1_360, 900), (1_360, 1_120), (1_360, 600), (390, 844)
ALIVE = ".worker:not(.is-dead, .is-stopped)"
OVERVIEW = "/jobqueue/?period=15m"


def main(folder: Path) -> int:
    """Take all pictures; return the exit code."""
    if why := missing():
        print(f"no pictures: {why}")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as started:
        take_demo(started, folder)
    with stage(work_seconds=0.35, fail_rate=0.08) as shop, browser() as started:
        shop.start_workers(4, threads=4)
        page = signed_in(started, shop, TALL)
        with under_load(shop), killing(shop):
            page.goto(f"{shop.base}{OVERVIEW}")
            time.sleep(LOAD_SECONDS)
            wait_until(lambda: is_telling(page), "one worker has just died, others work", 60)
            take(page, folder / "live-overview.png")
            page.emulate_media(color_scheme="dark")
            take(page, folder / "live-dark.png")
            page.emulate_media(color_scheme="light")
            resize(page, DESKTOP)
            visit(page, f"{shop.base}/jobqueue/jobs", folder / "live-jobs.png")
            phone = signed_in(started, shop, PHONE)
            visit(phone, f"{shop.base}{OVERVIEW}", folder / "live-phone.png")
            visit(phone, f"{shop.base}/jobqueue/jobs", folder / "live-phone-jobs.png")
        pictures(shop, page, folder)
    return 0


def take_demo(started: Any, folder: Path) -> None:
    """Watch the demo from its beginning to its verdict, and take a picture."""
    with demo_run() as run:
        page = signed_in(started, run, TALL)
        page.goto(f"{run.base}{OVERVIEW}")
        print(run.table(), flush=True)
        jobs = run.jobs()
        wait_until(lambda: parts_in_words(page) == [jobs, 0, 0, 0], "all are counted", 60)
        crew = SUPERVISORS * PROCESSES
        wait_until(lambda: page.locator(ALIVE).count() == crew, "all workers are back", 60)
        pace = page.locator(".legend b").first
        wait_until(lambda: pace.inner_text() == "0", "nothing has ended lately", 60)
        take(page, folder / "live-kill-loop.png")
        page.context.close()


def pictures(shop: Stage, page: Any, folder: Path) -> None:
    """Take those that need no kills."""
    client = shop.client
    back = f"task:{DELIVERY} state:succeeded attempts>1 failures<1"
    found = wait_until(lambda: client.get("/jobs/", q=back, limit=1)["results"], "one that is back")
    shop.manage("jobs", "pause", "mail", "--reason", "the provider is down")
    resize(page, FLAT)
    visit(page, f"{shop.base}/jobqueue/jobs/{found[0]['id']}", folder / "live-job.png")
    resize(page, DESKTOP)
    visit(page, f"{shop.base}/jobqueue/errors?period=15m", folder / "live-errors.png")
    visit(page, f"{shop.base}/jobqueue/queues", folder / "live-queues.png")
    visit(page, f"{shop.base}/jobqueue/workers", folder / "live-workers.png")
    visit(page, f"{shop.base}/jobqueue/schedules?edit=new", folder / "live-schedules.png")
    visit(page, f"{shop.base}/jobqueue/submit", folder / "live-submit.png")


def visit(page: Any, address: str, path: Path) -> None:
    """Go there, and take a picture once it is complete."""
    page.goto(address)
    page.wait_for_selector("h1")
    page.wait_for_selector(".loading", state="detached")
    time.sleep(3)
    take(page, path)


def resize(page: Any, size: tuple[int, int]) -> None:
    """Give the tab another size."""
    page.set_viewport_size({"width": size[0], "height": size[1]})


def take(page: Any, path: Path) -> None:
    """Take a picture of what is on the screen."""
    page.screenshot(path=str(path))
    print(path.name, flush=True)


def is_telling(page: Any) -> bool:
    """Return whether the page shows in one look what happens: a death, and work that goes on."""
    alive = page.locator(ALIVE).count()
    dead = page.locator(".worker.is-dead").count()
    busy = page.locator(".worker .slot.is-busy").count()
    return bool(alive >= 3 and dead >= 2 and busy >= 3)


@contextmanager
def under_load(shop: Stage) -> Iterator[None]:
    """Order and deliver until it is left."""
    with in_background(lambda stop: load(shop.client, stop)):
        yield


def load(client: Client, stop: threading.Event) -> None:
    """Post an order and some deliveries, again and again, in waves that a chart can show."""
    for number in itertools.count():
        if stop.wait(0.12 if number // 60 % 2 else 0.35):
            return
        client.order(number)
        jobs = [
            {
                "task": DELIVERY,
                "kwargs": {"sku": ARTICLES[(number + n) % len(ARTICLES)], "quantity": 1 + n},
                "tags": [f"supplier:{number % 5}"],
            }
            for n in range(3)
        ]
        client.post("/jobs/batch/", {"jobs": jobs})


@contextmanager
def killing(shop: Stage) -> Iterator[None]:
    """Kill one supervisor after the other, with all its processes, until it is left.

    Each waits until the one before is back: a busy machine kills less often, and not everything.
    """

    def kill(stop: threading.Event) -> None:
        client = shop.client
        for name in itertools.cycle(shop.workers):
            while not stop.wait(KILL_SECONDS):
                with suppress(requests.ConnectionError):  # two threads share the connections
                    alive = {worker["name"] for worker in client.get("/workers/")["results"]}
                    if alive >= set(shop.workers):
                        break
            if stop.is_set():
                return
            shop.kill_worker(name)

    with in_background(kill):
        yield


@contextmanager
def in_background(run: Any) -> Iterator[None]:
    """Run it in a thread that is told to stop at the end."""
    stop = threading.Event()
    thread = threading.Thread(target=run, args=[stop], daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "images"))
