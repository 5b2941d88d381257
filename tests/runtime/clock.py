"""A clock that a test moves: stands in for the module ``time`` where a loop measures spans."""

import time as real
from typing import Any


class Clock:
    """``monotonic()`` says what the test says; all else is the real module's."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)
