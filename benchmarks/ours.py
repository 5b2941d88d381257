"""jobqueue itself: real workers, started by their command, on jobs that wait for them.

The queue is paused while the jobs are enqueued and the workers start, then released with one
hint. The time is the database's own: from the first job's start to the last job's finish, as the
attempts record them. So neither enqueueing nor an interpreter's start counts.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.db import connection
from django.db.models import Max, Min

from benchmarks.app.models import Row
from benchmarks.app.tasks import insert_row, noop
from benchmarks.race import Lap
from jobqueue import hints
from jobqueue.conf import ENQUEUE_CHUNK
from jobqueue.models import Action, Attempt, IdempotencyKey, Job, Queue, Worker

QUEUE = "default"
WAIT_SECONDS = 300.0
"""How long workers may take to be ready, and to drain what was enqueued."""
LOOK_SECONDS = 0.25
"""Between two looks at what is left. Each counts rows, and would cost what is measured."""
LISTENING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
EMPTY = "SELECT NOT EXISTS (SELECT FROM jobqueue_job WHERE state IN ('ready', 'running'))"


class BenchmarkFailed(RuntimeError):
    """Workers did not do what was to be measured; the message has their last words."""


def drain_noops(jobs: int, processes: int, threads: int) -> Lap:
    """Drain jobs that do nothing and are finished in batches."""
    return drain(lambda: noop.enqueue_many([noop.bind()] * jobs), jobs, processes, threads)


def drain_inserts(jobs: int, processes: int, threads: int) -> Lap:
    """Drain jobs that insert a row through the ORM, exactly once."""
    calls = [insert_row.bind(number) for number in range(jobs)]
    lap = drain(lambda: insert_row.enqueue_many(calls), jobs, processes, threads)
    if Row.objects.count() != jobs:
        raise BenchmarkFailed(f"{Row.objects.count()} rows of {jobs} jobs")
    return lap


def drain(enqueue: Callable[[], Any], jobs: int, processes: int, threads: int) -> Lap:
    """Return how long workers take for what `enqueue` enqueues."""
    reset()
    pause(True)
    enqueue()
    settle()
    with workers(processes, threads) as alive:
        pause(False)
        hints.send("default", [QUEUE])
        wait_until(lambda: ask(EMPTY), alive)
    return measured(jobs)


def enqueue_each(jobs: int) -> Lap:
    """Enqueue jobs one by one, each committed by itself."""
    reset()
    started = time.monotonic()
    for number in range(jobs):
        insert_row.enqueue(number)
    return Lap(jobs, time.monotonic() - started)


def enqueue_chunks(jobs: int) -> Lap:
    """Enqueue jobs by one call, in one transaction, ENQUEUE_CHUNK in a statement."""
    reset()
    calls = [insert_row.bind(number) for number in range(jobs)]
    started = time.monotonic()
    insert_row.enqueue_many(calls)
    return Lap(jobs, time.monotonic() - started)


CHUNK = ENQUEUE_CHUNK


def reset() -> None:
    """Empty all tables, as a new installation has them."""
    models = (Job, Attempt, Queue, Worker, Action, IdempotencyKey, Row)
    tables = ", ".join(model._meta.db_table for model in models)
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {tables} CASCADE")


def settle() -> None:
    """Let statistics be known and nothing be left to flush, as for what we compare with."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE jobqueue_job")
        cursor.execute("CHECKPOINT")


def pause(paused: bool) -> None:
    """Pause the queue, or release it."""
    Queue.objects.update_or_create(name=QUEUE, defaults={"paused": paused})


@contextmanager
def workers(processes: int, threads: int) -> Iterator[Callable[[], None]]:
    """Run `runworker` until all its processes listen; stop it in order.

    Yield a function that raises if it has ended by itself.
    """
    command = [sys.executable, "-m", "django", "runworker", "--processes", str(processes)]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*command, "--threads", str(threads)], stdout=output, stderr=output
        )

        def alive() -> None:
            if process.poll() is not None:
                raise BenchmarkFailed(f"runworker ended:\n{last_words(output)}")

        try:
            wait_until(lambda: ask(LISTENING) >= processes, alive)
            yield alive
        finally:
            process.terminate()
            process.wait()


def measured(jobs: int) -> Lap:
    """Return the lap that the attempts recorded; raise unless every job succeeded once."""
    done = Attempt.objects.filter(outcome="succeeded")
    count = done.count()
    if count != jobs or Attempt.objects.count() != jobs:
        raise BenchmarkFailed(f"{count} successes in {Attempt.objects.count()} runs of {jobs} jobs")
    times = done.aggregate(first=Min("started_at"), last=Max("finished_at"))
    return Lap(jobs, (times["last"] - times["first"]).total_seconds())


def ask(question: str) -> Any:
    """Return the one value that a query answers."""
    with connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]


def wait_until(condition: Callable[[], Any], alive: Callable[[], None]) -> None:
    """Wait for a condition while the workers live."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        alive()
        if time.monotonic() > deadline:
            raise BenchmarkFailed("the workers did not come to an end")
        time.sleep(LOOK_SECONDS)


def last_words(output: IO[bytes]) -> str:
    """Return the end of what the workers wrote."""
    output.seek(0)
    return "\n".join(output.read().decode(errors="replace").splitlines()[-20:])
