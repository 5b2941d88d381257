"""Waiting for what should come, never for time to pass."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0
"""How long anything is waited for: far more than it takes, so that a busy machine passes too."""


def wait_until[T](condition: Callable[[], T], what: str = "what must come") -> T:
    """Return the first true value of `condition`; AssertionError if `what` never comes."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < give_up, f"waited {PATIENCE_SECONDS:.0f} s in vain for {what}"
        time.sleep(0.02)
    return value
