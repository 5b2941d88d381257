"""What a worker process hears from outside: orders of its supervisor, and signals it ignores."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from jobqueue.runtime.exit_codes import ABORTED

DRAIN, ABORT = b"d", b"a"
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def ignore_signals() -> None:
    """Leave signals to the supervisor: a terminal's Ctrl-C reaches the whole group.

    A Python handler, not SIG_IGN: programs that a job starts get the default back.
    """
    for number in IGNORED:
        signal.signal(number, lambda *_: None)


def obey(descriptor: int, drain: Callable[[], None], grace_seconds: float) -> None:
    """Read orders in a thread: drain, or exit at once. The end of the pipe means drain.

    The supervisor holds the only write end, so the pipe ends with it, however it dies; then
    nobody is left to end this process after the grace but itself.
    """

    def read() -> None:
        while True:
            order = os.read(descriptor, 1)
            if order == ABORT:
                os._exit(ABORTED)
            drain()
            if not order:
                break
        time.sleep(grace_seconds)
        os._exit(ABORTED)

    threading.Thread(target=read, name="jobqueue-orders", daemon=True).start()
