"""What was looked up a moment ago serves whoever asks the same: one look a second and process.

    status = Fresh(control.status)
    status.of("default")        # asks the database, or returns what it said within a second

For answers that are the same for every caller: whether one may be told them is decided before, by
the permission that the method of a view needs. Whoever asks while another looks waits for that
look; one that fails is not kept. Each answer says as of when it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ClassVar

from jobqueue import control

FRESH_SECONDS = 1.0
"""How long an answer serves further requests: less than anybody notices, and enough that fifty
readers cost what one does."""


class Fresh[T]:
    """The last answers of `look`, by the TASKS alias that it was asked about."""

    _all: ClassVar[list[Fresh[object]]] = []

    def __init__(self, look: Callable[[str], T]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._found: dict[str, tuple[float, T]] = {}
        self._all.append(self)  # type: ignore[arg-type]

    def of(self, backend: str) -> T:
        """Return what `look` says of an alias, at most `FRESH_SECONDS` old."""
        with self._lock:
            at, found = self._found.get(backend, (0.0, None))
            if found is None or time.monotonic() - at > FRESH_SECONDS:
                found = self._look(backend)
                self._found[backend] = (time.monotonic(), found)
            return found

    @classmethod
    def forget_all(cls) -> None:
        """Look anew; for tests, whose databases come and go."""
        for each in cls._all:
            each._found.clear()


readiness = Fresh(control.readiness)
status = Fresh(control.status)
"""Costs about twenty statements; `/stats/` and `/page/findings/` share it."""
