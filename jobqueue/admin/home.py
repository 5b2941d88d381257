"""Where the admin looks: which TASKS alias, and the database that holds its jobs.

The admin shows one database: that of the alias in JOBQUEUE["ADMIN"]["BACKEND"], or, if this alias
does not use jobqueue's backend, of the first that does. Aliases that share it share its pages.
"""

from __future__ import annotations

from typing import Any

from jobqueue.conf import jobqueue_aliases, options_for
from jobqueue.control import Actor
from jobqueue.surfaces import admin_options


def alias() -> str:
    """Return the TASKS alias that the admin acts through."""
    known = jobqueue_aliases()
    wanted = admin_options().backend
    return wanted if wanted in known or not known else known[0]


def database() -> str:
    """Return the alias in DATABASES of what the admin shows."""
    return options_for(alias()).database


def actor(request: Any) -> Actor:
    """Return who acts: the user, through the admin."""
    return Actor(request.user.get_username(), "admin")
