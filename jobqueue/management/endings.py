"""How a command at a terminal ends when somebody has had enough of it: quietly."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import BaseCommand

INTERRUPTED = 130
"""Ctrl-C where there is nothing to end in order: what a shell reports for SIGINT."""
NOBODY_READS = 141
"""The reader of a pipe has gone (`jobs list | head -1`): what a shell reports for SIGPIPE."""


class QuietCommand(BaseCommand):
    """A command that shows no traceback for Ctrl-C, nor for a pipe that nobody reads any more."""

    def run_from_argv(self, argv: list[str]) -> None:
        """Run from the command line; `call_command` leaves both to its caller."""
        with quiet_endings():
            super().run_from_argv(argv)


@contextmanager
def quiet_endings() -> Iterator[None]:
    """Exit with the code of the signal where the block is interrupted, or nobody reads on."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, where its error can be caught
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # the terminal has shown ^C, maybe behind a line of progress
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _let_go()
        sys.exit(NOBODY_READS)


def _let_go() -> None:
    """Send what is still in the buffers nowhere: the interpreter flushes them at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
