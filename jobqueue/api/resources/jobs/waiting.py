"""``?wait=10``: an answer that comes once the job has ended, or the time is up.

While it waits a request holds no connection to the database and no transaction: it asks, hangs up,
and asks again, ever more rarely. It does hold a thread of the server, so at most `MAX_WAITING`
requests of a process wait at the same time; one more is answered at once, with Retry-After.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from django.db import connections, transaction

MAX_WAITING = 16
"""Requests of one process that wait: more would leave the threads of usual servers to others."""
FIRST_PAUSE_SECONDS = 0.1
LAST_PAUSE_SECONDS = 1.0

_places = threading.BoundedSemaphore(MAX_WAITING)


def wait_until(has_ended: Callable[[], bool], seconds: float, database: str) -> bool:
    """Return once `has_ended()`, or after `seconds`; False if there was no place to wait.

    `has_ended` is asked at once; it may use Django's connection to `database`.
    """
    if has_ended():
        return True
    if not _places.acquire(blocking=False):
        return False
    try:
        until = time.monotonic() + seconds
        pause = FIRST_PAUSE_SECONDS
        while (rest := until - time.monotonic()) > 0:
            _hang_up(database)
            time.sleep(min(pause * random.uniform(0.8, 1.2), rest))
            if has_ended():
                break
            pause = min(pause * 1.5, LAST_PAUSE_SECONDS)
        return True
    finally:
        _places.release()


def _hang_up(database: str) -> None:
    """Close the connection, or give it back to its pool; not one that is in a transaction."""
    if not transaction.get_connection(database).in_atomic_block:
        connections[database].close()
