"""The supervisor's thread that recovers what its dead children held.

The supervisor saw the process end, so nothing needs to be waited for: row, sessions and jobs at
once. While the database is away the deaths wait here, and are worked off when it is back.
"""

from __future__ import annotations

from collections import deque

from jobqueue.conf import Options
from jobqueue.engine.recovery import Death, recover
from jobqueue.events import emit
from jobqueue.runtime.loop import Loop
from jobqueue.storage import storage_for
from jobqueue.storage.connections import discard, open_connection

RETRY_SECONDS = 0.5


class Janitor:
    """Recovers deaths in a loop of its own."""

    def __init__(self, options: Options, direct: bool) -> None:
        self._options = options
        self._connection = open_connection(options.database, direct=direct)
        self._deaths: deque[Death] = deque()
        self.loop = Loop(
            "janitor", self._run_once, RETRY_SECONDS, lambda: discard(self._connection)
        )

    def report(self, death: Death) -> None:
        """Hand over a death, from the supervisor's main thread."""
        self._deaths.append(death)
        self.loop.wake()

    @property
    def is_done(self) -> bool:
        return not self._deaths

    def _run_once(self) -> bool:
        if not self._deaths:
            return False
        death = self._deaths[0]
        recovered = recover(storage_for(self._connection, self._options), death, self._options)
        emit(
            "worker.recovered",
            worker=death.worker,
            released=recovered.released,
            reaped=recovered.reaped,
            buried=recovered.buried,
        )
        if recovered.is_settled:
            self._deaths.popleft()
        return bool(self._deaths) and recovered.is_settled
