"""Runs one loop as a command of its own, until a signal."""

from __future__ import annotations

from collections.abc import Callable

from jobqueue.engine import delivery
from jobqueue.events import emit
from jobqueue.runtime.loop import Loop
from jobqueue.runtime.shutdown import STOP_SIGNALS, SignalBox

STOP_SECONDS = 10.0
"""How long a statement in flight may take to end after a signal."""


def run_service(
    name: str, run_once: Callable[[], bool | None], interval: float, reset: Callable[[], None]
) -> None:
    """Run a loop until TERM, INT or HUP; it stops between two rounds."""
    box = SignalBox()
    loop = Loop(name, run_once, interval, reset)
    delivery.begin()
    loop.start()
    emit("service.started", service=name)
    while not any(number in STOP_SIGNALS for number in box.wait(1.0)):
        pass
    loop.stop()
    loop.join(STOP_SECONDS)
    delivery.end(STOP_SECONDS)
    emit("service.stopped", service=name)
    box.close()
