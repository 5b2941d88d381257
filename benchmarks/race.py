"""A race: the same work in so many processes and threads, timed from the common start.

Every thread first makes ready (imports, connects) and then waits for all others, so that neither
an interpreter's start nor a connection counts. The time is the last end minus the first start, on
the clock that all processes of a machine share.
"""

import multiprocessing
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty
from typing import Any

START_SECONDS = 120.0
"""How long all threads may take until they are ready."""

Work = Callable[[], int]
MakeReady = Callable[..., Work]


class RaceFailed(RuntimeError):
    """A thread of a race raised; the message has its error."""


@dataclass(frozen=True, slots=True)
class Lap:
    """What was measured once: so many jobs in so many seconds."""

    jobs: int
    seconds: float

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / self.seconds


def race(make_ready: MakeReady, processes: int, threads: int, *args: Any) -> Lap:
    """Call ``make_ready(*args)`` in each thread, then, together, the work it returned.

    `make_ready` is a function of a module (processes are spawned); its work returns a number of
    jobs. Raise RaceFailed if any thread raises.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes * threads)
    laps = context.Queue()
    children = [
        context.Process(target=_run_threads, args=(make_ready, threads, args, barrier, laps))
        for _ in range(processes)
    ]
    for child in children:
        child.start()
    try:
        found = [_next(laps, children) for _ in range(processes * threads)]
    finally:
        for child in children:
            child.join()
    starts, ends, counts = zip(*found, strict=True)
    return Lap(sum(counts), max(ends) - min(starts))


def _next(laps: Any, children: list[Any]) -> tuple[float, float, int]:
    while True:
        try:
            lap = laps.get(timeout=1.0)
        except Empty:
            if any(child.exitcode for child in children):
                raise RaceFailed("a process ended before it reported") from None
            continue
        if isinstance(lap, str):
            raise RaceFailed(lap)
        return lap  # type: ignore[no-any-return]


def _run_threads(
    make_ready: MakeReady, threads: int, args: tuple[Any, ...], barrier: Any, laps: Any
) -> None:
    runners = [
        threading.Thread(target=_run, args=(make_ready, args, barrier, laps))
        for _ in range(threads)
    ]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()


def _run(make_ready: MakeReady, args: tuple[Any, ...], barrier: Any, laps: Any) -> None:
    try:
        work = make_ready(*args)
        barrier.wait(START_SECONDS)
        started = time.monotonic()
        count = work()
        laps.put((started, time.monotonic(), count))
    except BaseException as error:
        barrier.abort()
        laps.put(f"{type(error).__name__}: {error}")
