"""Capturing what the code of a job logs, by any logger, for the log lines of its run.

A record belongs to a run if it is made in the run's own ``contextvars.Context``: in its thread, in
what it awaits, in ``sync_to_async``; not in threads that it starts. Everything counts that the
project's logging lets through and that is INFO or above, whatever handlers it has.

By the record factory and not by a handler: one on the root logger would silence Python's last
resort (warnings on standard error) and ``logging.basicConfig``, and would miss loggers that do
not propagate. A record made outside of jobs costs the look at one context variable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jobqueue.engine.run_state import current_run

LEVEL = logging.INFO
"""Lines below are not kept: debugging output is long, and may hold secrets."""

Factory = Callable[..., logging.LogRecord]


class _Capture:
    """The record factory of before, and then some."""

    def __init__(self, make: Factory) -> None:
        self.make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self.make(*args, **kwargs)
        run = current_run.get()
        if run is not None and (record.levelno or 0) >= LEVEL:  # None: makeLogRecord's own
            reports = run.environment.reports
            if reports is not None:
                reports.log(run, record)
        return record


def install() -> None:
    """Capture from now on. Harmless when called again."""
    if not isinstance(logging.getLogRecordFactory(), _Capture):
        logging.setLogRecordFactory(_Capture(logging.getLogRecordFactory()))


@contextmanager
def capturing() -> Iterator[None]:
    """Capture within the block, for doubles of a worker in a test."""
    before = logging.getLogRecordFactory()
    install()
    ours = logging.getLogRecordFactory()
    try:
        yield
    finally:
        if logging.getLogRecordFactory() is ours:
            logging.setLogRecordFactory(before)
