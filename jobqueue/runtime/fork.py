"""What happens to a worker's sessions in a process that a job forks.

The copy must neither speak on our sessions nor keep them alive after us: a server session that
a grandchild holds open would outlive its worker. Their descriptors are pointed at /dev/null (not
closed: a number that is used again would be written to), and the connection objects forgotten.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

_sessions: weakref.WeakSet[Any] = weakref.WeakSet()
_installed = False


def install() -> None:
    """Watch the connections of this process from now on. Harmless when called again."""
    global _installed
    if _installed:
        return
    _installed = True
    connection_created.connect(_remember, dispatch_uid="jobqueue.fork")
    os.register_at_fork(after_in_child=_let_go)


def _remember(connection: Any, **kwargs: Any) -> None:
    with suppress(TypeError):
        _sessions.add(connection.connection)


def _let_go() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for session in list(_sessions):
        with suppress(Exception):
            os.dup2(nowhere, session.fileno())
    os.close(nowhere)
    for wrapper in connections.all(initialized_only=True):
        wrapper.connection = None
