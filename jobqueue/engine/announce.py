"""Telling workers about new jobs: after the outermost commit, once per transaction and queue.

A hint is sent only when the jobs can be seen, never from inside the caller's transaction
(NOTIFY there takes a server-wide lock at commit), and its failure is nobody's error: workers
poll. Without a transaction it is sent at once; under manual transaction management
(``set_autocommit(False)``) nobody tells us of the commit, and the poll finds the job.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.events import emit

_ATTRIBUTE = "_jobqueue_hints"


def announce(connection: BaseDatabaseWrapper, alias: str, queues: Iterable[str]) -> None:
    """Hint at `queues` of TASKS alias `alias` once the open transaction of `connection` commits."""
    if connection.in_atomic_block:
        _pending(connection).add(connection, alias, queues)
    elif connection.get_autocommit():
        send_hint(alias, queues)


def send_hint(alias: str, queues: Iterable[str]) -> None:
    """Send one hint; never raise."""
    from jobqueue import hints

    try:
        hints.send(alias, queues)
    except Exception as error:
        emit("hint.failed", level=logging.WARNING, alias=alias, error=repr(error)[:200])


class _Hints:
    """The hints of one transaction, or of what is left of it after a savepoint rolled back.

    `callbacks` is the connection's own list of on_commit callbacks. Django replaces it whenever a
    transaction ends or a savepoint rolls back, so as long as it is the same list nothing that was
    registered here has been dropped.
    """

    def __init__(self, callbacks: list[Any]) -> None:
        self.callbacks = callbacks
        self.sent = False
        self._queues: dict[tuple[str, str], list[frozenset[Any]]] = {}

    def add(self, connection: BaseDatabaseWrapper, alias: str, queues: Iterable[str]) -> None:
        """Register a callback, unless one is that will live at least as long as this savepoint.

        One registered inside a savepoint goes when that rolls back; it can stand for a later job
        only within the same savepoint.
        """
        savepoints = frozenset(connection.savepoint_ids)
        for queue in queues:
            known = self._queues.setdefault((alias, queue), [])
            if not any(theirs <= savepoints for theirs in known):
                known.append(savepoints)
                connection.on_commit(self.send, robust=True)

    def send(self) -> None:
        """Send all hints, at the first of our callbacks that Django calls."""
        if self.sent:
            return
        self.sent = True
        queues: dict[str, set[str]] = {}
        for alias, queue in self._queues:
            queues.setdefault(alias, set()).add(queue)
        for alias, names in queues.items():
            send_hint(alias, names)


def _pending(connection: BaseDatabaseWrapper) -> _Hints:
    hints: _Hints | None = getattr(connection, _ATTRIBUTE, None)
    if hints is None or hints.sent or hints.callbacks is not connection.run_on_commit:
        hints = _Hints(connection.run_on_commit)
        setattr(connection, _ATTRIBUTE, hints)
    return hints
