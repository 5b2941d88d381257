"""The slots of a worker process: threads for ``def`` tasks, one event loop for ``async def``.

A claim waits in the queue until a slot takes it; what waits has not started and can be taken
back. Every end goes to the outbox, from which the fetch loop writes batches.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import connections

from jobqueue.engine.execution import broken, run_async, run_sync
from jobqueue.engine.job_block import leave_kept_block
from jobqueue.engine.outcomes import Ended
from jobqueue.engine.runs import Run
from jobqueue.runtime.ledger import Ledger
from jobqueue.storage.records import Claim

logger = logging.getLogger("jobqueue")

Finished = tuple[Ended, int | None]
"""How a job ended, and its entry in the ledger if it has got one."""


PUT_OFF_SECONDS = 0.1
MAX_PUT_OFF_SECONDS = 5.0
"""Pauses between tries to write an end that could not be written; they double."""
_Waiting = tuple[float, Claim]
"""When a claim was put, and the claim."""


class Outbox:
    """Ends that are still to be written; wakes the fetch loop."""

    def __init__(self, wake: threading.Event) -> None:
        self._items: deque[Finished] = deque()
        self._wake = wake
        self._later: list[Finished] = []
        self._later_at = 0.0
        self._pause = PUT_OFF_SECONDS

    def put(self, finished: Finished, *, is_urgent: bool = True) -> None:
        """Hand over an end, from any thread; urgent ones wake the fetch loop."""
        self._items.append(finished)
        if is_urgent and not self._wake.is_set():
            self._wake.set()

    def take(self, limit: int) -> list[Finished]:
        """Return up to `limit` ends, oldest first, and with them what was put off until now."""
        taken: list[Finished] = []
        if self._later and time.monotonic() >= self._later_at:
            taken, self._later = self._later[:limit], self._later[limit:]
        with suppress(IndexError):
            while len(taken) < limit:
                taken.append(self._items.popleft())
        return taken

    def put_back(self, items: list[Finished]) -> None:
        """Return ends that could not be written, to the front."""
        self._items.extendleft(reversed(items))

    def put_off(self, items: list[Finished]) -> None:
        """Take ends that could not be written just now; `take` returns them after a while.

        To be called after every try, also without any: the pauses grow only while there are some.
        """
        self._later += items
        if not self._later:
            self._pause = PUT_OFF_SECONDS
        elif items:
            self._later_at = time.monotonic() + self._pause
            self._pause = min(self._pause * 2, MAX_PUT_OFF_SECONDS)

    def __len__(self) -> int:
        """Return how many ends can be written now: those put off are not among them."""
        return len(self._items)


class ThreadSlots:
    """A fixed number of threads that run ``def`` tasks one at a time each."""

    def __init__(
        self, count: int, ledger: Ledger, outbox: Outbox, make: Callable[[Claim], Run | Ended]
    ) -> None:
        self.count = count
        self._ledger = ledger
        self._outbox = outbox
        self._make = make
        self._tickets: queue.SimpleQueue[bool] = queue.SimpleQueue()  # one a claim; False: stop
        self._first: deque[_Waiting] = deque()
        self._others: deque[_Waiting] = deque()
        self._busy = bytearray(count)  # one flag a thread: nothing to lock
        self._threads = [
            threading.Thread(target=self._work, args=(n,), name=f"jobqueue-slot-{n}", daemon=True)
            for n in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def put(self, claim: Claim, *, is_first: bool = False) -> None:
        """Let a free slot run `claim`, or the next to become free.

        is_first: before all that wait and are not.
        """
        (self._first if is_first else self._others).append((time.monotonic(), claim))
        self._tickets.put(True)

    def take_back(self, older_than: float = 0.0) -> list[Claim]:
        """Return claims that have waited longer than `older_than` seconds without starting."""
        taken: list[Claim] = []
        limit = time.monotonic() - older_than
        for waiting in (self._first, self._others):
            with suppress(queue.Empty, IndexError):  # a slot was faster
                while waiting[0][0] <= limit:
                    if not self._tickets.get_nowait():
                        self._tickets.put(False)
                        return taken
                    taken.append(self._pop(waiting))
        return taken

    @property
    def waiting(self) -> int:
        return self._tickets.qsize()

    @property
    def waiting_first(self) -> int:
        return len(self._first)

    @property
    def running(self) -> int:
        return sum(self._busy)

    def stop(self, timeout: float) -> None:
        """End the threads, which must be idle."""
        for _ in self._threads:
            self._tickets.put(False)
        for thread in self._threads:
            thread.join(timeout)

    def _work(self, number: int) -> None:
        while (claim := self._next()) is not None:
            self._busy[number] = 1
            entry = None
            try:
                entry = self._ledger.start(claim.id, claim.fence, claim.timeout)
                run = self._make(claim)
                has_next = self._tickets.qsize() > 0
                ended = run if isinstance(run, Ended) else run_sync(run, has_next=has_next)
            except BaseException as error:  # none is expected; a slot less would be for good
                ended = broken(claim, error)
            self._ledger.ended(entry)
            self._busy[number] = 0
            # A job that committed itself leaves nothing to write: no hurry while others wait here.
            is_urgent = not ended.committed or self._tickets.qsize() <= self.count
            self._outbox.put((ended, entry), is_urgent=is_urgent)
        connections.close_all()

    def _next(self) -> Claim | None:
        """Return what to run next; a thread that has to wait for it keeps nothing open."""
        try:
            has_claim = self._tickets.get_nowait()
        except queue.Empty:
            leave_kept_block()
            has_claim = self._tickets.get()
        return self._pop(self._first) if has_claim else None

    def _pop(self, waiting: deque[_Waiting]) -> Claim:
        """Return the oldest of `waiting`, else of the others: there is one for each ticket."""
        try:
            return waiting.popleft()[1]
        except IndexError:
            return (self._others if waiting is self._first else self._first).popleft()[1]


class AsyncSlots:
    """One event loop in a thread of its own, for ``async def`` tasks."""

    def __init__(
        self, count: int, ledger: Ledger, outbox: Outbox, make: Callable[[Claim], Run | Ended]
    ) -> None:
        self.count = count
        self.running = 0
        self._ledger = ledger
        self._outbox = outbox
        self._make = make
        self._loop = asyncio.new_event_loop()
        self._is_stopping = False
        self._tasks: dict[asyncio.Task[None], Claim | None] = {}  # None: its job has begun
        self._thread = threading.Thread(target=self._serve, name="jobqueue-async", daemon=True)

    def start(self) -> None:
        """Start the loop; harmless when called again."""
        if not self._thread.is_alive():
            self._thread.start()

    def put(self, claim: Claim) -> None:
        """Run `claim` on the loop; to be called from the fetch loop's thread only."""
        self.running += 1
        self._loop.call_soon_threadsafe(self._spawn, claim)

    def done(self) -> None:
        """Note, from the fetch loop's thread, that the end of one job was taken from the outbox."""
        self.running -= 1

    def stop(self, timeout: float) -> None:
        """End the loop, which must be idle."""
        self._is_stopping = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._is_stopping:
            try:
                self._loop.run_forever()  # a job can stop the loop, or exit in a task of its own
            except BaseException as error:
                logger.error("A job's %s ended the event loop; it goes on", type(error).__name__)
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        connections.close_all()

    def _spawn(self, claim: Claim) -> None:
        task = self._loop.create_task(self._run(claim), context=contextvars.Context())
        self._tasks[task] = claim
        task.add_done_callback(self._let_go)

    async def _run(self, claim: Claim) -> None:
        """Run a job, with a thread of its own for its sync parts, whose connections are closed.

        Its end is handed over whatever happens: a job may have cancelled the very task it runs in.
        """
        entry: int | None = None
        ended: Ended | None = None
        self._tasks[asyncio.current_task()] = None  # type: ignore[index] # there is one: this
        try:
            entry = self._ledger.start(claim.id, claim.fence, claim.timeout)
            run = self._make(claim)
            async with ThreadSensitiveContext() as context:
                ended = run if isinstance(run, Ended) else await run_async(run)
                await _close_connections(SyncToAsync.context_to_thread_executor.get(context))
            if isinstance(run, Run) and run.state.committed:  # by a sync part that went on
                ended = replace(ended, committed=True, failure=None)
        except BaseException as error:  # none is expected
            ended = ended or broken(claim, error)
        self._ledger.ended(entry)
        self._outbox.put((ended, entry))

    def _let_go(self, task: asyncio.Task[None]) -> None:
        """Forget a task. A job cancelled before it began has an end too: its row is given back by
        the beat, which finds that nobody holds it.
        """
        claim = self._tasks.pop(task)
        if claim is not None:
            now = time.monotonic()
            self._outbox.put((Ended(claim, now, now), None))


async def _close_connections(thread: Executor | None) -> None:
    """Close the connections of a job's thread, also if the job has cancelled its own task.

    Not through sync_to_async: a cancelled one may never run.
    """
    if thread is None:
        return
    closing = asyncio.wrap_future(thread.submit(connections.close_all))
    while not closing.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(closing)
