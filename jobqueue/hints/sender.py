"""Sending hints: a transport behind a breaker, and the count of what was lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from typing import ClassVar

from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.events import emit, line_of
from jobqueue.hints.breaker import Breaker

MAX_QUEUES = 100
"""Queues hinted by one call: bounds its cost. The poll finds the jobs of the others."""
MAX_ERROR_LENGTH = 200


class Transport:
    """A way to send hints; this one sends none, as nobody listens."""

    kind: ClassVar[str] = "none"

    def deliver(self, queues: Collection[str], connection: BaseDatabaseWrapper | None) -> None:
        """Send a hint for each of `queues`; raise whatever goes wrong, within a bounded time."""

    def probe(self) -> None:
        """Find out whether a hint could be sent now; raise what would be in its way."""

    def describe(self, error: Exception) -> str:
        """Return an error as one line without passwords."""
        return line_of(error, MAX_ERROR_LENGTH)


class Broken(Transport):
    """Stands for a transport that the options do not allow; says why whenever it is used."""

    kind: ClassVar[str] = "broken"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def deliver(self, queues: Collection[str], connection: BaseDatabaseWrapper | None) -> None:
        raise self._error

    def probe(self) -> None:
        raise self._error


class Sender:
    """Sends the hints of one TASKS alias in this process. Never raises."""

    def __init__(self, alias: str, transport: Transport) -> None:
        self.lost = 0
        self._alias = alias
        self._transport = transport
        self._breaker = Breaker(transport.describe, backend=alias, via=transport.kind)
        self._lock = threading.Lock()

    def trouble(self) -> str:
        """Return why a hint could not be sent now, empty if it could; never raise."""
        try:
            self._transport.probe()
        except Exception as error:
            return self._transport.describe(error)
        return ""

    def send(self, queues: set[str], connection: BaseDatabaseWrapper | None = None) -> None:
        """Send a hint for each of `queues`, or count them as lost."""
        hinted = sorted(queues)[:MAX_QUEUES]
        if self._breaker.call(lambda: self._transport.deliver(hinted, connection)):
            return
        with self._lock:
            self.lost += len(hinted)
        # For metrics; in a log it would be a line for each enqueue of an outage.
        emit("hints.lost", level=logging.DEBUG, backend=self._alias, count=len(hinted))
