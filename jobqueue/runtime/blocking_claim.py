"""Lets a worker wait for jobs that claims would pass over for ever, without keeping it waiting.

The fetch loop looks for such a job now and then, while it has room. If there is one, a thread with
a connection of its own waits in line for the row, claims it, and hands the claim to the loop. Most
workers never start it; of all that find the same job one waits.

The loop collects at every turn, and a beat is sent only if it has turned: so a claim is held before
two beats have found it with nobody, and given it back.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Sequence

from jobqueue import hints
from jobqueue.conf import TWIN_PATIENCE_SECONDS
from jobqueue.engine.environment import Environment
from jobqueue.engine.starvation import claim_in_line
from jobqueue.storage import Storage
from jobqueue.storage.records import Claim, Starved

logger = logging.getLogger("jobqueue")

IN_LINE_SECONDS = 30.0
"""How long one thread waits in line: longer than enqueues do, so that they give way first."""

LOOK_SHARE = 0.01
"""Most of the fetch loop's time that looking may take, where dead index entries make it slow."""


class BlockingClaim:
    """One worker's; `look`, `collect` and `stop` are the fetch loop's.

    wake: called from the thread when there is something to collect. has_room: asked there before
    it claims, whether a slot is free still.
    """

    def __init__(
        self,
        environment: Environment,
        alias: str,
        wake: Callable[[], object],
        has_room: Callable[[], bool],
    ) -> None:
        self._environment = environment
        self._alias = alias
        self._wake = wake
        self._has_room = has_room
        self._look_at = time.monotonic() + TWIN_PATIENCE_SECONDS * random.random()
        self._thread: threading.Thread | None = None
        self._found: list[Claim] = []
        self._stopping = threading.Event()

    def look(self, storage: Storage, queues: Sequence[str], tasks: Collection[str]) -> None:
        """Begin to wait for a job that others keep locked, if it is time to look and there is one.

        queues: empty for all.
        """
        now = time.monotonic()
        if now < self._look_at or self._stopping.is_set():
            return
        self._look_at = now + TWIN_PATIENCE_SECONDS * random.uniform(0.8, 1.2)
        if self._thread is not None and self._thread.is_alive():
            return
        job = storage.find_starved(queues, sorted(tasks))
        cost = time.monotonic() - now
        self._look_at = max(self._look_at, now + cost / LOOK_SHARE)
        if job is not None:
            self._thread = threading.Thread(
                target=self._wait, args=(job,), name="jobqueue-blocking-claim", daemon=True
            )
            self._thread.start()

    def collect(self) -> list[Claim]:
        """Return what has been claimed since the last call."""
        found = []
        while self._found:
            found.append(self._found.pop())
        return found

    def stop(self) -> None:
        """Claim nothing more; what is being claimed this moment its supervisor gives back."""
        self._stopping.set()

    def _wait(self, job: Starved) -> None:
        try:
            with self._environment.fresh_storage(statement_timeout=IN_LINE_SECONDS) as storage:
                claims, promoted = claim_in_line(
                    storage, job, self._environment.identity, IN_LINE_SECONDS, self._is_wanted
                )
                if claims:
                    self._found += claims  # at once: closing a session may take its time
                    self._wake()
                if promoted:
                    hints.send(self._alias, promoted, storage.connection)
        except Exception:  # the database is away, perhaps; the next look tries again
            logger.debug("Waiting in line for job %s failed", job.id, exc_info=True)

    def _is_wanted(self) -> bool:
        return self._has_room() and not self._stopping.is_set()
