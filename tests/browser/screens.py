"""python -m tests.browser.screens [FOLDER]: pictures of the live page, at work and under kill -9.

README's is of `make demo`, at its end; the table of that very run is printed, to stand above it.
For the others a shop with some failures gets orders and deliveries for six minutes, while its
workers are killed in turn. Pictures go to docs/images, or to FOLDER. Exits 2 where there is no
browser.
"""

import itertools
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests

from project.demo.plan import PROCESSES, SUPERVISORS
from project.pictures.camera import browser, missing
from tests.browser.demo_run import demo_run
from tests.browser.looking import parts_in_words, tile
from tests.browser.stage import ROOT, Client, Stage, signed_in, stage, wait_until

DELIVERY = "project.shop.tasks.book_delivery"
ARTICLES = (*("teapot", "cup", "kettle", "tea-tin") * 100, "saucer")
"""The last is an article that the shop has not: its job gives up."""
SUPERVISING, KILLED = 3, 2
"""Of so many supervisors so many have their workers killed: those of the others live long."""
WORKERS = SUPERVISING * PROCESSES
LOAD_SECONDS = 900.0
"""The longest wait for the rate of a worker, which is known once it has lived for six minutes."""
PULSE_SECONDS = 121.0
"""After so long the chart of the last two minutes is full."""
KILL_SECONDS = 15.0
COUNTED_SECONDS = 9
"""So long after a death its error is in every figure, and the next one is still to come."""
WORK_SECONDS = 2.0
"""Long enough for jobs that run to have run for a while."""
LIST_SECONDS = 6.0
"""So long a list of jobs is left to age before the new ones are asked for."""
DESKTOP, TALL, PHONE = (1_360, 900), (1_360, 1_240), (390, 1_280)
ZONE = "Europe/Berlin"
"""Not UTC: the pictures show which zone the times are in."""
ALIVE = ".worker:not(.is-dead, .is-stopped)"
OVERVIEW = "/jobqueue/?period=15m"
WHOLE = ".panel, .jobs tr, .timeline li"
"""What a picture must not cut."""
MARGIN = 12
BOTTOM = """([whole, margin, limit]) => {
    const ends = [...document.querySelectorAll(whole)].map((one) => {
        const own = one.tagName === "TR" ? 0 : margin;
        return one.getBoundingClientRect().bottom + own;
    });
    return Math.ceil(Math.max(200, ...ends.filter((end) => end <= (limit || Infinity))));
}"""


def main(folder: Path) -> int:
    """Take all pictures; return the exit code."""
    if why := missing():
        print(f"no pictures: {why}")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as started:
        take_demo(started, folder)
    with stage(work_seconds=WORK_SECONDS, fail_rate=0.05) as shop, browser() as started:
        shop.start_workers(SUPERVISING, processes=PROCESSES, threads=3)
        page, phone = (signed_in(started, shop, size, timezone_id=ZONE) for size in (TALL, PHONE))
        with under_load(shop), killing(shop):
            for tab in (page, phone):
                tab.goto(f"{shop.base}{OVERVIEW}")
            rated = page.locator(ALIVE, has_text="attempts/min")
            wait_until(rated.count, "rates of workers are known", LOAD_SECONDS)
            take_at_work(shop, page, phone, folder)
        take_afterwards(shop, page, folder)
    return 0


def take_demo(started: Any, folder: Path) -> None:
    """Watch the demo from its beginning to its verdict, and take a picture."""
    with demo_run() as run:
        page = signed_in(started, run, TALL, timezone_id=ZONE)
        page.goto(f"{run.base}{OVERVIEW}")
        full = time.monotonic() + PULSE_SECONDS
        print(run.table(), flush=True)
        jobs = run.jobs()
        wait_until(lambda: parts_in_words(page) == [jobs, 0, 0, 0], "all are counted", 60)
        crew = SUPERVISORS * PROCESSES
        wait_until(lambda: page.locator(ALIVE).count() == crew, "all workers are back", 60)
        pace = page.locator(".legend b").first
        wait_until(lambda: pace.inner_text() == "0", "nothing has ended lately", 60)
        time.sleep(max(0.0, full - time.monotonic()))
        take(page, folder / "live-kill-loop.png")
        page.context.close()


def take_at_work(shop: Stage, page: Any, phone: Any, folder: Path) -> None:
    """Take those that show work, and the deaths of workers."""
    wait_until(lambda: is_telling(page), "a worker has died, others work", 180)
    take(page, folder / "live-overview.png")
    page.emulate_media(color_scheme="dark")
    take(page, folder / "live-dark.png", full=True)
    page.emulate_media(color_scheme="light")
    wait_until(lambda: is_telling(phone), "the same on a phone", 180)
    take(phone, folder / "live-phone.png")
    page.goto(f"{shop.base}/jobqueue/workers")
    wait_until(lambda: are_at_work(page), "all workers are there, and busy", 60)
    take(page, folder / "live-workers.png")
    resize(page, DESKTOP)
    page.goto(f"{shop.base}/jobqueue/jobs")
    wait_until(varied(page), "jobs of many states are shown", 240)
    take(page, folder / "live-jobs.png")


def take_afterwards(shop: Stage, page: Any, folder: Path) -> None:
    """Take those that need no work."""
    back = f"task:{DELIVERY} state:succeeded attempts>1 failures<1"
    found = wait_until(
        lambda: shop.client.get("/jobs/", q=back, limit=1)["results"], "one that is back"
    )
    visit(page, f"{shop.base}/jobqueue/jobs/{found[0]['id']}", folder / "live-job.png")
    resize(page, TALL)
    visit(page, f"{shop.base}/jobqueue/errors?period=15m", folder / "live-errors.png")


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


def take(page: Any, path: Path, *, full: bool = False) -> None:
    """Take a picture of the page from its top to its end, or to the last that is not cut."""
    size = page.viewport_size
    height = page.evaluate(BOTTOM, [WHOLE, MARGIN, 0 if full else size["height"]])
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height}
    page.screenshot(path=str(path), full_page=full, clip=clip)
    print(path.name, flush=True)


def is_telling(page: Any) -> bool:
    """Return whether the page shows in one look what happens: a death, and work that goes on.

    Not before the last death is counted everywhere, and only when what is pushed and what is asked
    for agree on how many jobs run.
    """
    alive = page.locator(ALIVE).count()
    dead = page.locator(".worker.is-dead").all_inner_texts()
    busy = page.locator(".worker .slot.is-busy").count()
    ages = [int(age) for age in re.findall(r"died (\d+) s ago", " ".join(dead))]
    is_counted = bool(ages) and min(ages) >= COUNTED_SECONDS
    is_whole = alive >= WORKERS and len(dead) >= 2 and busy >= WORKERS
    return is_counted and is_whole and tile(page, "Running") == busy


def are_at_work(page: Any) -> bool:
    """Return whether the page of workers shows all of them, and most of them busy."""
    missing_one = page.locator(".badge-dead").count()
    rows = page.locator("tr", has=page.locator(".slots"))
    busy = rows.filter(has=page.locator(".slot.is-busy")).count()
    return bool(rows.count() == WORKERS and not missing_one and busy >= WORKERS - 1)


def varied(page: Any) -> Callable[[], bool]:
    """Return what tells whether jobs that run and that are tried again are listed, for a while.

    It asks for new ones as soon as those that are listed are too old.
    """
    asked = 0.0

    def is_varied() -> bool:
        nonlocal asked
        if time.monotonic() - asked > LIST_SECONDS:
            page.evaluate("document.querySelector('.news')?.click()")
            asked = time.monotonic()
        rows = page.locator(".jobs tr", has=page.locator(".badge")).all_inner_texts()[:9]
        aged = [row for row in rows if re.search(r"\d s ago|in \d", row)]
        is_tried_again = any("retrying" in row and "Error" in row for row in rows)
        is_running = any("running" in row for row in aged)
        return is_tried_again and is_running and len(aged) >= len(rows) - 2

    return is_varied


@contextmanager
def under_load(shop: Stage) -> Iterator[None]:
    """Order and deliver until it is left."""
    with in_background(lambda stop: load(shop.client, stop)):
        yield


def load(client: Client, stop: threading.Event) -> None:
    """Post an order and some deliveries, again and again, in waves that a chart can show."""
    for number in itertools.count():
        if stop.wait(0.45 if number // 30 % 2 else 0.9):
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
        jobs[0] |= {"run_after": "PT5M"} if number % 20 == 0 else {}
        client.post("/jobs/batch/", {"jobs": jobs})


@contextmanager
def killing(shop: Stage) -> Iterator[None]:
    """Kill a worker process every few seconds, the oldest of those that may be, until it is left.

    Each waits until the one before is back: a busy machine kills less often, and not everything.
    """

    def kill(stop: threading.Event) -> None:
        while not stop.wait(KILL_SECONDS):
            with suppress(
                requests.ConnectionError, ProcessLookupError
            ):  # two threads share the first
                found = [
                    w for w in shop.client.get("/workers/")["results"] if w["kind"] == "worker"
                ]
                if len(found) == WORKERS:
                    mortal = [w for w in found if w["name"] in shop.workers[:KILLED]]
                    os.kill(min(mortal, key=lambda w: w["started_at"])["pid"], signal.SIGKILL)

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
