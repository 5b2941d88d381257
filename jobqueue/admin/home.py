"""Where the admin looks: which TASKS alias, and the database that holds its jobs.

The admin shows one database. That is the one of the alias "default" if it uses jobqueue's backend,
else of the first alias that does; aliases that share this database share its pages.
"""

from __future__ import annotations

from typing import Any

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import jobqueue_aliases, options_for
from jobqueue.control import Actor


def alias() -> str:
    """Return the TASKS alias that the admin acts through."""
    known = jobqueue_aliases()
    if DEFAULT_TASK_BACKEND_ALIAS in known or not known:
        return DEFAULT_TASK_BACKEND_ALIAS
    return next(iter(known))


def database() -> str:
    """Return the alias in DATABASES of what the admin shows."""
    return options_for(alias()).database


def actor(request: Any) -> Actor:
    """Return who acts: the user, through the admin."""
    return Actor(request.user.get_username(), "admin")
