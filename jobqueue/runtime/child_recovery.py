"""The supervisor's thread that recovers what its dead children held.

The supervisor saw the process end, so nothing needs to be waited for: row, sessions and jobs at
once. While the database is away the deaths wait here, and are worked off when it is back. One
that cannot be dealt with (a row that stays locked, a session that does not end) waits for its
next turn behind the others.

What a supervisor leaves behind that goes before this is done: rows that say dead and how, for all
deaths are declared before the first is dealt with; any reaper finds them.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from uuid import UUID

from jobqueue.conf import Options
from jobqueue.engine.recovery import Death, Recovered, declare, recover
from jobqueue.events import emit
from jobqueue.runtime.loop import Loop
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import discard, open_connection

RETRY_SECONDS = 0.5
AGAIN_SECONDS = 0.02
"""First pause before what is not settled has its next turn, a session that is just ending; doubled
up to RETRY_SECONDS."""


class ChildRecovery:
    """Recovers deaths in a loop of its own."""

    def __init__(self, options: Options, direct: bool) -> None:
        self._options = options
        self._direct = direct
        self._connection = open_connection(options.database, direct=direct)
        self._deaths: deque[Death] = deque()
        self._declared: set[UUID] = set()
        self._tried: set[UUID] = set()
        self._recovered: dict[UUID, Recovered] = {}
        self._again_seconds = AGAIN_SECONDS
        self.loop = Loop(
            "recovery", self.run_once, RETRY_SECONDS, lambda: discard(self._connection)
        )

    def report(self, death: Death) -> None:
        """Hand over a death, from the supervisor's main thread."""
        self._deaths.append(replace(death, direct=self._direct))
        self.loop.wake()

    @property
    def is_done(self) -> bool:
        return not self._deaths

    def close(self, timeout: float) -> None:
        """Work on what is left, for `timeout` seconds at most and while the database answers."""
        until = time.monotonic() + timeout
        while not (self.is_done or self.loop.is_failing) and time.monotonic() < until:
            time.sleep(0.02)
        self.loop.stop()
        self.loop.join(timeout)

    def run_once(self) -> bool:
        """Deal with one death, as far as can be; return whether others wait.

        Once all that are left have had their turn, the next comes soon at first, then less often.
        """
        if not self._deaths:
            return False
        storage = storage_for(self._connection, self._options)
        self._declare(storage)
        death = self._deaths[0]
        self._deaths.rotate(-1)  # unless it is settled, it comes last
        recovered = recover(storage, death, self._options)
        self._tell(death, recovered)
        if recovered.is_settled:
            self._deaths.remove(death)
            self._declared.discard(death.worker)
        else:
            self._tried.add(death.worker)
        waiting = {each.worker for each in list(self._deaths)}  # the main thread may add one now
        if waiting - self._tried:
            return True
        self._tried.clear()
        self.loop.soon(self._again_seconds)
        self._again_seconds *= 2
        return False

    def _tell(self, death: Death, recovered: Recovered) -> None:
        """Tell what was given back, in all its turns, once a death is settled."""
        total = self._recovered.pop(death.worker, Recovered()) + recovered
        if not total.is_settled:
            self._recovered[death.worker] = total
            return
        emit(
            "worker.recovered",
            worker=death.worker,
            released=total.released,
            reaped=total.reaped,
            buried=total.buried,
        )

    def _declare(self, storage: Storage) -> None:
        for death in list(self._deaths):
            if death.worker not in self._declared:
                declare(storage, death)
                self._declared.add(death.worker)
                self._again_seconds = AGAIN_SECONDS
