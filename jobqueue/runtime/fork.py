"""What happens to a worker's sessions and signals in a process that a job forks.

The copy must neither speak on our sessions nor keep them alive after us: a server session that
a grandchild holds open would outlive its worker. Their descriptors are pointed at /dev/null (not
closed: a number that is used again would be written to), and the connection objects forgotten.
"""

from __future__ import annotations

import os
import signal
import threading
import weakref
from contextlib import suppress
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

from jobqueue.runtime.stop_orders import IGNORED

_sessions: weakref.WeakSet[Any] = weakref.WeakSet()
_mask = threading.local()  # each thread forks for itself
_installed = False


def install() -> None:
    """Watch the connections of this process from now on. Harmless when called again."""
    global _installed
    if _installed:
        return
    _installed = True
    connection_created.connect(_remember, dispatch_uid="jobqueue.fork")
    os.register_at_fork(before=_hold_signals, after_in_parent=_unhold_signals)
    os.register_at_fork(after_in_child=_let_go)


def _remember(connection: Any, **kwargs: Any) -> None:
    with suppress(TypeError):
        _sessions.add(connection.connection)


def _hold_signals() -> None:
    """Let no signal reach the copy before it has handlers of its own."""
    _mask.before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)


def _unhold_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask.before)


def _let_go() -> None:
    _drop_sessions()
    for number in IGNORED:  # whoever forked must be able to end the copy
        signal.signal(number, signal.SIG_DFL)
    _unhold_signals()


def _drop_sessions() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for session in list(_sessions):
        with suppress(Exception):
            os.dup2(nowhere, session.fileno())
    os.close(nowhere)
    for wrapper in connections.all(initialized_only=True):
        wrapper.connection = None
