"""Log set-up of our commands: readable lines on a terminal, JSON lines otherwise.

Our own lines, and all that others log to standard error without a form of their own (Django's
default, and Python's last resort), have one form. What the project has formatted stays as it is.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from jobqueue.compat import FRAMEWORK_LOGGER


class JSONFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the facts of an event."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON text."""
        line: dict[str, Any] = {
            "time": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
        }
        facts = getattr(record, "jobqueue", None)
        if facts:
            line.update({key: _plain(value) for key, value in facts.items()})
        else:
            line["message"] = record.getMessage()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """A line for people: time, level, the logger's name unless it is ours, message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line of a record, without its traceback."""
        is_ours = record.name.partition(".")[0] == "jobqueue"
        name = "" if is_ours else f"{record.name}: "
        return f"{record.asctime} {record.levelname:<7} {name}{record.message.rstrip()}"


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | None) else str(value)


def configure(log_format: str, level: str) -> None:
    """Give the ``jobqueue`` logger a handler on standard error, unless the project gave it one.

    log_format: text, json, or auto (text on a terminal). Handlers on standard error that have no
    form of their own get ours.
    """
    if log_format == "auto":
        log_format = "text" if sys.stderr.isatty() else "json"
    formatter = JSONFormatter() if log_format == "json" else TextFormatter()
    _form_others(formatter)
    logger = logging.getLogger("jobqueue")
    logger.setLevel(level.upper())
    if logger.handlers:
        return
    handler = logging.StreamHandler()
    handler.setLevel(level.upper())  # records of loggers below, which may have a level of their own
    handler.setFormatter(formatter)
    logger.addHandler(handler)
    logger.propagate = False


def _form_others(formatter: logging.Formatter) -> None:
    """Give our form to what is logged beside us to the same place in none at all."""
    loggers = [logging.getLogger(name) for name in (None, "django", FRAMEWORK_LOGGER)]
    for handler in [logging.lastResort, *(h for logger in loggers for h in logger.handlers)]:
        if (
            isinstance(handler, logging.StreamHandler)
            and handler.formatter is None
            and handler.stream in (sys.stderr, sys.__stderr__)
        ):
            handler.setFormatter(formatter)
