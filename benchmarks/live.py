"""``python -m benchmarks.live``: what an audience costs, and whether it is told the truth in time.

Fifty pages are open in one uvicorn, one of which does not read. Drains with and without them are
interleaved; then 5,000 transitions are spread over ten seconds, and at the end every viewer must
agree with the API. A figure that breaks a promise is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from statistics import median
from typing import Any

from benchmarks.facts import facts
from project.servers import PostgresServer

VIEWERS = 50
TRANSITIONS = 5_000
STORM_SECONDS = 10.0
AGREE_SECONDS = 5.0
FRAMES_PER_SECOND = 4
AT_ONCE = 10
"""Jobs in one enqueue."""
TRANSITIONS_OF_A_JOB = 3
"""Enqueued, claimed, finished."""


def main() -> None:
    """Run it, and print what was found."""
    parser = argparse.ArgumentParser(prog="benchmarks.live", description=__doc__)
    parser.add_argument("--jobs", type=int, default=60_000, help="in a drain (default: 60000)")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with PostgresServer(durable=True, settings={"max_wal_size": "8GB"}) as server:
        os.environ |= {
            "BENCHMARK_URL": server.url,
            "DJANGO_SETTINGS_MODULE": "benchmarks.site",
        }
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        found = facts(server.url)
        result = measure(arguments.jobs, arguments.rounds)
    for name, value in (found | result).items():
        print(f"{name:36} {value}")


def measure(jobs: int, rounds: int) -> dict[str, Any]:
    """Return what was measured, as it is to be printed."""
    from benchmarks import ours

    rates: dict[bool, list[float]] = {True: [], False: []}
    shares: list[float] = []
    own: list[float] = []
    with site() as web:
        idle = memory(web)
        for _ in range(rounds):
            rates[False].append(ours.drain_noops(jobs, 1, 4).rate)
            with (
                audience(web) as viewers,
                busy(web.process.pid, shares),
                busy(viewers.pid, own),
            ):
                rates[True].append(ours.drain_noops(jobs, 1, 4).rate)
        ours.reset()
        with audience(web) as viewers:
            stormed = storm(web, viewers)
    without, beside = median(rates[False]), median(rates[True])
    return {
        "drained a second, nobody watching": f"{without:,.0f}  {spread(rates[False])}",
        f"the same, {VIEWERS} watching": f"{beside:,.0f}  {spread(rates[True])}",
        "ratio": f"{beside / without:.2f}",
        "web server's share of a core": f"{median(shares):.0%}, the viewers' own {median(own):.0%}",
        "server's memory before": f"{idle:.1f} MB",
    } | stormed


def spread(rates: list[float]) -> str:
    return f"({min(rates):,.0f} to {max(rates):,.0f})"


# --- the storm ------------------------------------------------------------------------------------


def storm(web: Any, viewers: Any) -> dict[str, Any]:
    """Spread transitions over some seconds; return what viewers and server made of them."""
    from benchmarks import ours
    from benchmarks.app.tasks import noop

    before = memory(web)
    jobs = TRANSITIONS // TRANSITIONS_OF_A_JOB // AT_ONCE * AT_ONCE + AT_ONCE
    peak, sizes = before, []
    with ours.workers(1, 4) as alive:
        began = time.monotonic()
        for done in range(AT_ONCE, jobs + 1, AT_ONCE):
            noop.enqueue_many([noop.bind()] * AT_ONCE)
            due = began + STORM_SECONDS * done / jobs
            time.sleep(max(0.0, due - time.monotonic()))
            sizes.append(memory(web))
        took = time.monotonic() - began
        ours.wait_until(lambda: ours.ask(ours.EMPTY), alive)
        ended = time.monotonic()
        behind = until_agreed(web, viewers) - ended
    report = viewers.ask("report")
    peak = max(*sizes, memory(web))
    if report["busiest"] > FRAMES_PER_SECOND + 1:  # a frame that was late meets the next
        raise ours.BenchmarkFailed(f"{report['busiest']} frames in a second")
    per_second = report["frames"] / (VIEWERS - 1) / 4 / (time.monotonic() - viewers.since)
    return {
        "transitions": f"{jobs * TRANSITIONS_OF_A_JOB:,} in {took:.1f} s",
        "frames a second of a subscription": f"{per_second:.1f}, at most {report['busiest']}",
        "told to ask again": report["resyncs"],
        "all agree with the API after": f"{behind:.1f} s",
        "server's memory, storm": f"{before:.1f} MB before, {peak:.1f} MB at most",
    }


def until_agreed(web: Any, viewers: Any) -> float:
    """Return when every viewer knew what the API says."""
    from benchmarks import ours

    deadline = time.monotonic() + AGREE_SECONDS
    while True:
        page = web.get(f"jobs/?limit={50}")["results"]
        counts = web.get("stats/")["counts"]
        known = {job["id"]: [job["version"], job["state"]] for job in page}
        told = viewers.ask(f"agree {' '.join(known)}")
        wrong = [jobs for now, jobs in told if jobs != known or not agrees(now, counts)]
        if not wrong:
            return time.monotonic()
        if time.monotonic() > deadline:
            raise ours.BenchmarkFailed(f"{len(wrong)} viewers do not agree: {wrong[0]} {known}")
        time.sleep(0.1)


def agrees(told: dict[str, Any], counts: dict[str, Any]) -> bool:
    return all(told[state]["value"] == counts[state]["value"] for state in told)


# --- processes ------------------------------------------------------------------------------------


class Site:
    """A web server, and how to ask its API."""

    def __init__(self, process: Any, port: int) -> None:
        self.process, self.port = process, port
        self.cookies = [login(f"viewer-{number}") for number in range(VIEWERS)]

    def get(self, path: str) -> Any:
        from urllib.request import Request, urlopen

        url = f"http://127.0.0.1:{self.port}/jobqueue/api/v1/{path}"
        request = Request(url, headers={"Cookie": self.cookies[-1]})
        with urlopen(request, timeout=10) as response:
            return json.load(response)


def login(name: str) -> str:
    """Return the cookie of a user who may see everything."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    user = get_user_model().objects.create_superuser(name)
    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}"


@contextmanager
def site() -> Iterator[Site]:
    """Run uvicorn with one process."""
    import socket
    from urllib.error import URLError

    with socket.create_server(("127.0.0.1", 0)) as listener:
        # What the kernel keeps for a viewer that does not read, so that the server soon feels it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
        port = listener.getsockname()[1]
        command = [sys.executable, "-m", "uvicorn", "benchmarks.site_asgi:application"]
        command += ["--fd", str(listener.fileno()), "--log-level", "warning", "--lifespan", "off"]
        process = subprocess.Popen(command, pass_fds=[listener.fileno()])
    try:
        web = Site(process, port)
        with suppress(URLError):
            web.get("stats/")  # whatever is loaded late is loaded
        yield web
    finally:
        process.terminate()
        process.wait()


class Audience:
    """The process with the viewers."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self.pid = process.pid
        self.since = time.monotonic()

    def ask(self, question: str) -> Any:
        """Return its answer. Raise if a viewer has ended."""
        print(question, file=self._process.stdin, flush=True)
        said = json.loads(self._process.stdout.readline())
        if said["failed"]:
            raise RuntimeError(f"viewers have ended: {said['failed'][:3]}")
        return said["answer"]


@contextmanager
def audience(web: Site) -> Iterator[Audience]:
    """Let all come in, and look."""
    command = [sys.executable, "-m", "benchmarks.audience", str(web.port), str(VIEWERS)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, **pipes)
    try:
        print("\n".join(web.cookies), file=process.stdin, flush=True)
        viewers = Audience(process)
        deadline = time.monotonic() + 30
        while not viewers.ask("ready"):
            if time.monotonic() > deadline:
                raise RuntimeError("the viewers were not let in")
            time.sleep(0.1)
        viewers.since = time.monotonic()
        yield viewers
    finally:
        process.kill()
        process.wait()


@contextmanager
def busy(pid: int, shares: list[float]) -> Iterator[None]:
    """Add the share of a core that a process used meanwhile."""
    import psutil

    process = psutil.Process(pid)
    began, before = time.monotonic(), sum(process.cpu_times()[:2])
    yield
    used = sum(process.cpu_times()[:2]) - before
    shares.append(used / (time.monotonic() - began))


def memory(web: Site) -> float:
    """Return how many megabytes the web server holds."""
    import psutil

    return float(psutil.Process(web.process.pid).memory_info().rss) / 1e6


if __name__ == "__main__":
    main()
