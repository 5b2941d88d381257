"""Signals of a command that runs until told to stop, turned into bytes a main loop can wait for."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SignalBox:
    """Collects signals; `wait` returns those that arrived, at once when one does."""

    def __init__(self, *, children: bool = False) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._poll = select.poll()  # select() takes no descriptor from 1,024 on
        self._poll.register(self._reader, select.POLLIN)
        numbers = [*STOP_SIGNALS, *([signal.SIGCHLD] if children else [])]
        self._before = {number: signal.signal(number, self._note) for number in numbers}

    def wait(self, timeout: float) -> list[int]:
        """Return the signals received, after at most `timeout` seconds."""
        with suppress(InterruptedError):
            self._poll.poll(timeout * 1_000)
        with suppress(BlockingIOError):
            return list(os.read(self._reader, 4096))
        return []

    def close(self) -> None:
        """Put the signal handlers back as they were."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._reader)
        os.close(self._writer)

    def _note(self, number: int, frame: object) -> None:
        with suppress(BlockingIOError):
            os.write(self._writer, bytes([number]))
