"""One line of status at the bottom of a terminal that several processes write to.

The supervisor keeps the line; it and its children also log there, and jobs print. Whatever begins
a line of its own wipes out the status first, and the supervisor draws it again a moment later.
"""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

from jobqueue.engine.counts import numbered

WIPE = "\r\x1b[K"
"""Goes to the first column and clears to the end of the line."""
USUAL_COLUMNS = 80
"""Assumed where a terminal does not say how many it has."""


class WipingStream:
    """A terminal's stream whose every line wipes out what status stands where it begins."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._at_start = True

    def write(self, text: str) -> int:
        """Write `text`, after clearing the line if it begins one."""
        if not text:
            return 0
        begins, self._at_start = self._at_start, text.endswith("\n")
        self.stream.write(WIPE + text if begins else text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of `lines`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class StatusLine:
    """The line itself; `end` leaves its last text standing."""

    def __init__(self, stream: Any) -> None:
        self._stream: TextIO = stream.stream if isinstance(stream, WipingStream) else stream

    def show(self, text: str) -> None:
        """Draw `text` over what the line says, cut to the terminal: a wrapped one stays behind."""
        self._stream.write(WIPE + text[: self._columns() - 1])
        self._stream.flush()

    def end(self, text: str) -> None:
        """Draw `text` for the last time and go on below it."""
        self.show(text)
        self._stream.write("\n")
        self._stream.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or USUAL_COLUMNS
        except OSError:
            return USUAL_COLUMNS


def shows_status(log_format: str) -> bool:
    """Return whether a `runworker` with this --log-format keeps a line of status."""
    return log_format in ("auto", "text") and sys.stdout.isatty()


def waiting_for(running: int, grace_seconds: float) -> str:
    """Return what a person at a terminal is told who has asked a `runworker` to stop."""
    jobs, they = numbered(running, "running job"), "it runs" if running == 1 else "they run"
    return (
        f"Waiting up to {grace_seconds:g} s for {jobs}. Ctrl-C again stops at once; {they} again."
    )


def share_terminal(log_format: str) -> None:
    """Let this process's output make way for the status line, if there is one.

    Before Django's set-up: handlers of logging keep the streams that they find.
    """
    if shows_status(log_format):
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream.isatty() and not isinstance(stream, WipingStream):
                setattr(sys, name, WipingStream(stream))
