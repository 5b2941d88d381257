"""Which TASKS aliases a process works for."""

from __future__ import annotations

import logging

from jobqueue.conf import jobqueue_aliases, options_for
from jobqueue.events import emit
from jobqueue.exceptions import InvalidOptions

_told: set[str] = set()


def aliases_of(database: str) -> list[str]:
    """Return the aliases whose jobs and schedules live in a database.

    One whose options are wrong is left out, and told of once: a system check says more, and the
    others need not suffer for it.
    """
    found = []
    for alias in jobqueue_aliases():
        try:
            if options_for(alias).database == database:
                found.append(alias)
        except InvalidOptions as error:
            _tell(alias, str(error))
    return found


def _tell(alias: str, error: str) -> None:
    text = f"{alias}: {error}"
    if text not in _told:
        _told.add(text)
        emit("alias.refused", level=logging.ERROR, alias=alias, error=error)
