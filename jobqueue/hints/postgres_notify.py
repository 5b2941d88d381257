"""Hints as PostgreSQL notifications: one channel per database, the payload names the queue.

Sent on Django's connection after the commit, in a statement of its own: inside the caller's
transaction NOTIFY would take a server-wide lock at commit. Heard on a session of our own that
waits on its socket, without queries. Every listening worker hears every hint, so there is nothing
to pass on; and a listener always reads, wanted or not, because an unread session would fill the
server's queue of notifications.

Needs a direct session to listen (a pooler in transaction mode drops LISTEN); sending needs none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import ClassVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.events import emit, line_of
from jobqueue.hints.listener import READ_SECONDS, ThreadListener
from jobqueue.hints.names import hint_name, queues_by_hint_name
from jobqueue.hints.sender import MAX_ERROR_LENGTH, Transport
from jobqueue.storage import storage_for
from jobqueue.storage.connections import discard, open_connection
from jobqueue.storage.statements import statement

CHANNEL = "jobqueue_hint"
"""Notifications stay within a database, so one name serves all; ``listen_hints.sql`` has it too."""


class PostgresTransport(Transport):
    """Sends hints through the session of whoever enqueued."""

    kind: ClassVar[str] = "postgres"

    def __init__(self, database: str) -> None:
        self._database = database

    def deliver(self, queues: Collection[str], connection: BaseDatabaseWrapper | None) -> None:
        session = connection or connections[self._database]
        if session.in_atomic_block or not session.get_autocommit():
            return  # a TestCase, or a transaction managed by hand: nothing is committed yet
        storage = storage_for(session)
        for queue in queues:
            storage.notify(CHANNEL, hint_name(queue))


class PostgresListener(ThreadListener):
    """Hears the notifications of one database; made without queues, those about every queue."""

    kind: ClassVar[str] = "postgres"
    keeps_hints: ClassVar[bool] = False

    def __init__(
        self, alias: str, queues: Sequence[str], on_hint: Callable[[str], None], database: str
    ) -> None:
        super().__init__(alias, queues, on_hint)
        self._session = open_connection(database)
        self._hears_all = not queues

    def _connect(self) -> bool:
        self._session.ensure_connection()
        self._session.set_autocommit(True)
        if not storage_for(self._session).is_direct():
            emit("hints.pooled", level=logging.WARNING, **self._facts, hears="nothing: it polls")
            self._stopping.set()
            return False
        with self._session.cursor() as cursor:
            cursor.execute(statement("postgresql", "listen_hints"))
        return True

    def _read(self, queues: Sequence[str]) -> Iterable[str]:
        watched = queues_by_hint_name(queues)
        notifications = self._session.connection.notifies(timeout=READ_SECONDS, stop_after=1)
        payloads = [notification.payload for notification in notifications]
        if self._hears_all:
            return [watched.get(payload, payload) for payload in payloads]
        return [watched[payload] for payload in payloads if payload in watched]

    def _disconnect(self) -> None:
        discard(self._session)

    def _describe(self, error: Exception) -> str:
        return line_of(error, MAX_ERROR_LENGTH)
