"""Waiting for a condition, never for longer than a bound."""

import threading
import time
from collections.abc import Callable

INTERVAL_SECONDS = 0.1


def wait_until(condition: Callable[[], bool], seconds: float, stop: threading.Event) -> bool:
    """Ask `condition` again and again until it holds, the time is over, or `stop` is set.

    Return whether it holds.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline or stop.wait(INTERVAL_SECONDS):
            return False
    return True
