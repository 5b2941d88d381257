"""Log set-up of our commands: readable lines on a terminal, JSON lines otherwise."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any


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


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | None) else str(value)


def configure(log_format: str, level: str) -> None:
    """Give the ``jobqueue`` logger a handler on standard error, unless the project gave it one.

    log_format: text, json, or auto (text on a terminal).
    """
    logger = logging.getLogger("jobqueue")
    logger.setLevel(level.upper())
    if logger.handlers:
        return
    if log_format == "auto":
        log_format = "text" if sys.stderr.isatty() else "json"
    handler = logging.StreamHandler()
    handler.setLevel(level.upper())  # records of loggers below, which may have a level of their own
    if log_format == "json":
        handler.setFormatter(JSONFormatter())
    else:
        handler.setFormatter(
            logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
        )
    logger.addHandler(handler)
    logger.propagate = False
