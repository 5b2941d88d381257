"""What happens to a worker's sessions and signals in a process that a job forks.

The copy must neither speak on our sessions nor keep them alive after us: a server session that
a grandchild holds open would outlive its worker. Their descriptors are pointed at /dev/null (not
closed: a number that is used again would be written to), and the connection objects forgotten.

Another thread may be opening a session at that very moment, of which nobody has been told yet. So
what goes is every socket that leads to a server of a known session, or is on its way to any.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

from jobqueue.runtime.stop_orders import IGNORED

_sessions: weakref.WeakSet[Any] = weakref.WeakSet()
_mask = threading.local()  # each thread forks for itself
_installed = False
_SYN_SENT = 2  # first byte of the kernel's tcp_info: the state


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
    known = _descriptors_of(_sessions)
    opening = _leading_to(_servers_of(known))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in {*known, *opening}:
        with suppress(OSError):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)
    for wrapper in connections.all(initialized_only=True):
        wrapper.connection = None


def _descriptors_of(sessions: Iterable[Any]) -> set[int]:
    found = set()
    for session in list(sessions):
        with suppress(Exception):  # closed, or SQLite's, which has none
            found.add(session.fileno())
    return found


def _servers_of(descriptors: Iterable[int]) -> set[Any]:
    """Return the addresses that these sockets are connected to."""
    found = set()
    for descriptor in descriptors:
        with suppress(OSError), _borrowed(descriptor) as sock:
            found.add(sock.getpeername())
    return found


def _leading_to(servers: Collection[Any]) -> set[int]:
    """Return the sockets of this process that lead to one of `servers`, or are being connected."""
    found: set[int] = set()
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir("/dev/fd")
    for name in names:
        with suppress(OSError), _borrowed(int(name)) as sock:
            if _is_connecting(sock) or sock.getpeername() in servers:
                found.add(int(name))
    return found


def _is_connecting(sock: socket.socket) -> bool:
    if sock.family not in (socket.AF_INET, socket.AF_INET6) or not hasattr(socket, "TCP_INFO"):
        return False
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _SYN_SENT


@contextmanager
def _borrowed(descriptor: int) -> Iterator[socket.socket]:
    """A descriptor as a socket, for questions; it stays open. OSError: it is none."""
    sock = socket.socket(fileno=descriptor)
    try:
        yield sock
    finally:
        sock.detach()
