"""``python -m benchmarks api``: enqueueing over HTTP, beside a bare view that inserts one row.

Both are served by one uvicorn process and asked in turn, so that whatever else happens on the
machine happens to both: workers that run the jobs, one of which is killed every ten seconds. At the
end every job that was accepted has succeeded once, with one effect.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from django.contrib.auth.models import Permission, User
from rest_framework.authtoken.models import Token

from benchmarks import ours
from benchmarks.app.models import Row
from benchmarks.app.tasks import insert_row
from benchmarks.load import Answer, Target, every, new_key, send_all
from jobqueue.models import IdempotencyKey, Job, Worker
from project.demo.crew import loopback_socket

API, BARE = "POST /jobs/", "bare view"
GOALS = {"p95": 1.5, "p99": 2.0}
"""At most so many times the bare view's."""
KILL_SECONDS = 10.0
API_PER_BARE = 4
"""Requests to the API for each to the bare view: enough of those for a p99, and little load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much to send, and who drains it."""

    per_minute: int = 2_000
    seconds: float = 120.0
    processes: int = 2
    threads: int = 4


def measure(load: Load) -> dict[str, Any]:
    """Return what was measured; raise BenchmarkFailed if a job or an answer is missing."""
    ours.reset()
    kills: list[int] = []
    with server() as port, ours.workers(load.processes, load.threads) as alive:
        api, bare = targets()
        turns = [*[api] * (API_PER_BARE // 2), bare, *[api] * (API_PER_BARE - API_PER_BARE // 2)]
        send_all(port, turns, 600, 3.0)  # first requests import and compile
        stop = every(KILL_SECONDS, lambda: kills.append(kill_a_worker()))
        rate = load.per_minute * len(turns) // API_PER_BARE
        answers = send_all(port, turns, rate, load.seconds)
        stop()
        ours.wait_until(lambda: ours.ask(ours.EMPTY), alive)
    check(answers)
    return {"kills": len(kills), **summary(answers)}


def targets() -> tuple[Target, Target]:
    """Return the API and the bare view, as the same caller asks them."""
    user, _ = User.objects.get_or_create(username="benchmark")
    user.user_permissions.set(Permission.objects.filter(codename="enqueue_job"))
    token = f"Token {Token.objects.get_or_create(user=user)[0].key}"
    task = insert_row.module_path
    return (
        Target(
            API,
            "/jobqueue/api/v1/jobs/",
            lambda number: {"task": task, "args": [number]},
            lambda: {"Authorization": token, "Idempotency-Key": new_key()},
        ),
        Target(
            BARE,
            "/bare/",
            lambda number: {"number": number, "who": "bare"},
            lambda: {"Authorization": token},
        ),
    )


@contextmanager
def server() -> Iterator[int]:
    """Run uvicorn on a free port until the block ends; yield the port."""
    with loopback_socket() as listener, tempfile.TemporaryFile() as output:
        descriptor = listener.fileno()
        command = [sys.executable, "-m", "uvicorn", "benchmarks.asgi:application"]
        flags = ["--fd", str(descriptor), "--lifespan", "off", "--no-access-log"]
        process = subprocess.Popen(
            [*command, *flags], pass_fds=[descriptor], stdout=output, stderr=output
        )
        try:
            yield listener.getsockname()[1]
        except OSError as error:
            raise ours.BenchmarkFailed(f"{error}\n{ours.last_words(output)}") from error
        finally:
            process.terminate()
            process.wait()


def kill_a_worker() -> int:
    """End a worker process at once, as the kernel does that is out of memory; return its pid."""
    worker = Worker.objects.filter(dead=False, kind="worker").order_by("?").first()
    if worker is None:
        return 0
    os.kill(worker.pid, signal.SIGKILL)
    return int(worker.pid)


def check(answers: list[Answer]) -> None:
    """Raise BenchmarkFailed unless each request was accepted, and each job had one effect."""
    refused = [answer.status for answer in answers if answer.status != 201]
    if refused:
        raise ours.BenchmarkFailed(f"{len(refused)} requests were refused: {set(refused)}")
    accepted = sum(answer.target == API for answer in answers)
    jobs = Job.objects.count()
    counts = {
        "jobs that succeeded": Job.objects.filter(state="succeeded").count(),
        "effects": Row.objects.filter(who="job").count(),
        "kept answers": IdempotencyKey.objects.count(),
    }
    wrong = {name: count for name, count in counts.items() if count != jobs}
    if wrong or jobs < accepted:
        raise ours.BenchmarkFailed(f"{accepted} accepted, {jobs} jobs, {wrong}")


def summary(answers: list[Answer]) -> dict[str, Any]:
    """Return the percentiles of both views in milliseconds, and their ratios."""
    found = {name: percentiles(answers, name) for name in (API, BARE)}
    ratios = {p: found[API][p] / found[BARE][p] for p in ("p50", "p95", "p99")}
    return {"milliseconds": found, "ratios": ratios}


def percentiles(answers: list[Answer], name: str) -> dict[str, float]:
    """Return the percentiles of one view."""
    times = sorted(answer.seconds * 1_000 for answer in answers if answer.target == name)
    cuts = quantiles(times, n=100, method="inclusive")
    slowest = {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": times[-1]}
    return {"requests": len(times), **slowest}


def as_text(facts: dict[str, str], load: Load, found: dict[str, Any]) -> str:
    """Return the report for a terminal."""
    lines = [
        "",
        ", ".join(f"{name} {value}" for name, value in facts.items()),
        f"{load.per_minute:,} requests a minute for {load.seconds:g} s through uvicorn; "
        f"{load.processes} workers × {load.threads} threads, {found['kills']} killed",
        "",
        f"{'milliseconds':<20}{'requests':>10}{'p50':>10}{'p95':>10}{'p99':>10}{'max':>10}",
    ]
    for name, times in found["milliseconds"].items():
        cells = "".join(f"{times[p]:>10.1f}" for p in ("p50", "p95", "p99", "max"))
        lines.append(f"{name:<20}{times['requests']:>10,}{cells}")
    cells = "".join(f"{found['ratios'][p]:>10.2f}" for p in ("p50", "p95", "p99"))
    wanted = ", ".join(f"{p} at most {most:g}" for p, most in GOALS.items())
    lines += [f"{'ratio':<20}{'':>10}{cells}{'':>10}  wanted: {wanted}"]
    return "\n".join(lines)
