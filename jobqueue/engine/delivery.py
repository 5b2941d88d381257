"""Signals about jobs that have ended, sent where their receivers hold nobody up.

A receiver is the project's code: it may wait for a mail server. The loops of a worker, supervisor
or reaper must not wait with it (a worker whose fetch loop stands still is dead to the others), so
in such a process a thread of its own sends them, in order. Elsewhere (an operator's request, a
test) they are sent at once.

Sent at most once: what waits when the process dies is never sent. The thread that falls behind
makes its worker claim less (`is_behind`). One that hangs in a single receiver stops nobody: claims
go on, and what no longer fits is dropped, oldest first, with an event.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from django.db import connections

from jobqueue.engine.hygiene import clean_connections
from jobqueue.events import emit

logger = logging.getLogger("jobqueue")

MAX_WAITING = 10_000
"""Signals that wait to be sent; older ones are dropped."""
BEHIND = 1_000
"""From how many on a worker claims nothing more, so that receivers can keep up."""
HANGING_SECONDS = 30.0
"""A receiver that takes longer is not waited for."""

Send = Callable[[], object]


class Delivery:
    """A thread that sends what it is given."""

    def __init__(self) -> None:
        self._waiting: deque[Send] = deque()
        self._wake = threading.Event()
        self._began: float | None = None
        self._dropped = 0
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="jobqueue-signals", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, send: Send) -> None:
        """Send it in the thread; never waits."""
        if len(self._waiting) >= MAX_WAITING:
            self._drop()
        self._waiting.append(send)
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """Whether everything has been sent."""
        return not self._waiting and self._began is None

    @property
    def is_behind(self) -> bool:
        """Whether to give the receivers time: they are slow, but none of them hangs."""
        began = self._began
        is_hanging = began is not None and time.monotonic() - began > HANGING_SECONDS
        return len(self._waiting) >= BEHIND and not is_hanging

    def close(self, timeout: float) -> None:
        """Send what waits, within `timeout` seconds, and end the thread."""
        self._is_closing = True
        self._wake.set()
        self._thread.join(timeout)

    def _drop(self) -> None:
        self._waiting.popleft()
        self._dropped += 1
        if self._dropped == 1:
            emit("signals.dropping", level=logging.WARNING, waiting=len(self._waiting))

    def _run(self) -> None:
        while not (self._is_closing and not self._waiting):
            self._wake.wait()
            self._wake.clear()
            self._began = time.monotonic()  # before the first is taken: never idle in between
            while self._waiting:
                self._send(self._waiting.popleft())
            clean_connections()
            self._began = None
            if self._dropped:
                emit("signals.dropped", level=logging.WARNING, count=self._dropped)
                self._dropped = 0
        connections.close_all()

    def _send(self, send: Send) -> None:
        self._began = time.monotonic()
        try:
            send()
        except BaseException:  # nothing that a receiver raises ends the thread
            logger.exception("A signal could not be sent to all receivers")


_current: Delivery | None = None


def begin() -> Delivery:
    """Send signals of this process in a thread from now on; return that."""
    global _current
    _current = Delivery()
    _current.start()
    return _current


def end(timeout: float) -> None:
    """Send what waits, within `timeout` seconds; from then on signals are sent at once."""
    global _current
    delivery, _current = _current, None
    if delivery is not None:
        delivery.close(timeout)


def deliver(send: Send) -> None:
    """Call `send`, in the process's thread for it if there is one."""
    delivery = _current
    if delivery is None:
        send()
    else:
        delivery.put(send)
