"""Closing the connections of a session at its logout, at once, wherever they are.

In this process by Django's signal. In others through the default channel layer, if the project has
one: each process with connections listens to one group for hashes of sessions. A layer that is away
costs a logout no more than `LAYER_SECONDS`, and nobody a connection: the next look at the session
closes what it should have.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from asgiref.sync import async_to_sync
from django.contrib.auth.signals import user_logged_out
from django.dispatch import receiver

from jobqueue.events import emit, line_of
from jobqueue.live.crowd import crowd, hash_of

GROUP = "jobqueue.live"
LAYER_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 30.0

_listeners: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[None]] = WeakKeyDictionary()


@receiver(user_logged_out)
def _say_farewell(request: Any = None, **kwargs: Any) -> None:
    """Close what the session has open. Never raises: a logout goes on."""
    key = getattr(getattr(request, "session", None), "session_key", None)
    if not key:
        return
    session = hash_of(key)
    crowd.dismiss(session)
    layer = _layer()
    if layer is not None:
        with suppress(Exception):
            async_to_sync(_tell)(layer, session)


async def _tell(layer: Any, session: str) -> None:
    async with asyncio.timeout(LAYER_SECONDS):
        await layer.group_send(GROUP, {"type": "live.farewell", "session": session})


def listen() -> None:
    """Hear of logouts in other processes, while this event loop has connections."""
    layer = _layer()
    loop = asyncio.get_running_loop()
    task = _listeners.get(loop)
    if layer is not None and (task is None or task.done()):
        _listeners[loop] = loop.create_task(_listen(layer), name="jobqueue-live-farewells")


def rest() -> None:
    """Hear no more, if the last connection has gone."""
    if not len(crowd):
        task = _listeners.pop(asyncio.get_running_loop(), None)
        if task is not None:
            task.cancel()


async def _listen(layer: Any) -> None:
    backoff = 0.0
    while len(crowd):
        try:
            await _hear(layer)
            backoff = 0.0
        except Exception as error:
            if not backoff:
                emit("live.layer_failed", level=logging.WARNING, error=line_of(error))
            backoff = min(max(backoff * 2, 1.0), MAX_BACKOFF_SECONDS)
            await asyncio.sleep(backoff)


async def _hear(layer: Any) -> None:
    """Dismiss whose session is named, until nobody is left."""
    channel = await layer.new_channel()
    await layer.group_add(GROUP, channel)
    try:
        while len(crowd):
            with suppress(TimeoutError):
                async with asyncio.timeout(REJOIN_SECONDS):
                    while True:
                        message = await layer.receive(channel)
                        crowd.dismiss(str(message.get("session", "")))
            await layer.group_add(GROUP, channel)  # members expire
    finally:
        with suppress(Exception):
            await layer.group_discard(GROUP, channel)


REJOIN_SECONDS = 60.0


def _layer() -> Any:
    """Return the project's default channel layer, None if there is none."""
    try:
        from channels.layers import get_channel_layer

        return get_channel_layer()
    except Exception:  # not installed, or its settings are wrong: channels says so itself
        return None
