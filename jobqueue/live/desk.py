"""Where sessions are looked at: one thread of the process, one after the other.

A crowd that reconnects at once neither opens a session of the database each, nor holds up the
project's own synchronous code. Connections are kept as the project keeps them between requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from django.db import close_old_connections

from jobqueue.live.doors import Scope, Viewer, enter, identify

DOOR_SECONDS = 10.0
"""How long a handshake waits for the sessions' database."""


async def ask_in(scope: Scope) -> Viewer:
    """Return who asks to come in. Raise doors.Refused, or whatever prevents to know."""
    async with asyncio.timeout(DOOR_SECONDS):
        return await _ask(enter, scope)


async def look_again(viewer: Viewer) -> Viewer | None:
    """Return who has that session by now, None if nobody. Raise what prevents to know."""
    found = await _ask(identify, viewer.session)
    return found if found is not None and found.user_key == viewer.user_key else None


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
