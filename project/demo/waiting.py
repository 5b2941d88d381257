"""Waiting for a condition, never for longer than a bound."""

import time
from collections.abc import Callable

INTERVAL_SECONDS = 0.05


def wait_until(
    condition: Callable[[], bool], seconds: float, *, interval: float = INTERVAL_SECONDS
) -> bool:
    """Ask `condition` every `interval` seconds until it holds; return whether it did in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)
    return True
