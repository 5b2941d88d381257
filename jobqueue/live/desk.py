"""Where sessions are looked at: one thread of the process, one after the other.

A crowd that reconnects at once neither opens a session of the database each, nor holds up the
project's own synchronous code. Connections are kept as the project keeps them between requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from django.db import close_old_connections

from jobqueue.live.doors import Scope, Viewer, enter, identify

logger = logging.getLogger("jobqueue")


async def ask_in(scope: Scope) -> Viewer:
    """Return who asks to come in. Raise doors.Refused, or what the database raised."""
    return await _ask(enter, scope)


async def look_again(viewer: Viewer) -> Viewer | None:
    """Return who that is by now, None if nobody.

    While sessions cannot be read, nobody can be shown out or logged in; the database that has them
    has the jobs, as a rule, and there is nothing to see. So the viewer stays as they were.
    """
    try:
        return await _ask(identify, viewer.session)
    except Exception as error:
        logger.debug("A session could not be looked at", exc_info=error)
        return viewer


async def _ask[R](question: Callable[[Any], R], about: Any) -> R:
    return await asyncio.get_running_loop().run_in_executor(_executor(), _answer, question, about)


def _answer[R](question: Callable[[Any], R], about: Any) -> R:
    close_old_connections()
    try:
        return question(about)
    finally:
        close_old_connections()


@lru_cache(maxsize=1)
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "jobqueue-live-desk")
