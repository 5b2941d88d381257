"""One WebSocket: what is read, what is written, and whether its viewer may stay.

Three tasks, and the first that ends decides why the connection does: the reader takes messages, the
writer sends replies and what is new for the subscriptions, the keeper looks at the session again.
A client that does not read stops the writer in its ``send``: nothing is queued for it, since what
it is told is computed when it can be sent; after `SEND_SECONDS` it is closed. A client that asks
and does not read the replies is not read either.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from jobqueue.live import protocol
from jobqueue.live.desk import look_again
from jobqueue.live.doors import Viewer
from jobqueue.live.feed import feed_of
from jobqueue.live.protocol import (
    FRAMES_PER_SECOND,
    MAX_MALFORMED,
    MAX_MESSAGE_BYTES,
    MAX_MESSAGES,
    MAX_SUBSCRIPTIONS,
    MESSAGES_SECONDS,
    PROBLEMS,
    Close,
    Message,
    Ping,
    Refusal,
    Resync,
    Subscribe,
    Unsubscribe,
)
from jobqueue.live.reading import read
from jobqueue.live.subscriptions import Subscription, subscribe
from jobqueue.surfaces import live_options

logger = logging.getLogger("jobqueue")

SEND_SECONDS = 60.0
"""A frame that cannot be handed to the network for so long is for a client that has gone."""
SLOW_SECONDS = 10.0
"""Whoever did not read for so long is to ask the API again."""
CLOSE_SECONDS = 5.0
"""For saying why; then the connection ends without a word."""
RETRY_SECONDS = 1.0
"""Between looks at a session while they fail; past the time for it, nobody stays unseen."""
MAX_REPLIES = 32
"""Replies that wait to be sent; beyond them nothing is read."""

UNKNOWN: Any = object()
"""Nobody can tell who that is."""

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Connection:
    """One accepted WebSocket; see the module."""

    def __init__(self, viewer: Viewer, receive: Receive, send: Send) -> None:
        self.viewer = viewer
        self._receive = receive
        self._send = send
        self._options = live_options()
        self._feed = feed_of(self._options.backend)
        self._loop = asyncio.get_running_loop()
        self._subscriptions: dict[str, tuple[Subscribe, Subscription]] = {}
        self._replies: deque[Any] = deque()
        self._wake = asyncio.Event()
        self._has_room = asyncio.Event()
        self._dismissed = asyncio.Event()
        self._allowance = Allowance()

    def dismiss(self) -> None:
        """End, because its session was logged out; from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the connection with it
            self._loop.call_soon_threadsafe(self._dismissed.set)

    async def run(self) -> None:
        """Serve it until it ends; say why if it is the server that ends it."""
        self._say_hello()
        code: Close | None = Close.FAILED
        try:
            code = await self._first_to_end(self._read(), self._write(), self._keep())
        except OSError:
            code = None  # the client has gone in the middle of a frame
        except Exception:
            logger.exception("A connection of the live page failed")
        finally:
            for _, subscription in self._subscriptions.values():
                subscription.end()
        if code is not None:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._send({"type": "websocket.close", "code": int(code)})

    async def _first_to_end(self, *parts: Any) -> Close | None:
        tasks = [asyncio.ensure_future(part) for part in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return next(task for task in tasks if task in done).result()  # type: ignore[no-any-return]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # --- what comes ----------------------------------------

    async def _read(self) -> Close | None:
        malformed = 0
        while True:
            event = await self._receive()
            if event["type"] != "websocket.receive":
                return None
            text = event.get("text") or ""
            if _size(event) > MAX_MESSAGE_BYTES:
                return Close.TOO_LARGE
            if not self._allowance.spend():
                return Close.TOO_MANY
            try:
                self._handle(read(text))
            except Refusal as refusal:
                malformed += refusal.code == "malformed-message"
                if malformed > MAX_MALFORMED:
                    return Close.MALFORMED
                self._reply(protocol.error(refusal))
            while len(self._replies) >= MAX_REPLIES:
                self._has_room.clear()
                await self._has_room.wait()

    def _handle(self, message: Message) -> None:
        if isinstance(message, Ping):
            self._reply(protocol.pong(self._feed.lag_seconds))
        elif isinstance(message, Unsubscribe):
            self._drop(message.id)
        else:
            self._begin(message)

    def _begin(self, message: Subscribe, seq: int = 0) -> None:
        """Begin a subscription, or replace the one with its id. Raise Refusal."""
        self._drop(message.id)
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            code = "too-many-subscriptions"
            raise Refusal(code, PROBLEMS[code][1], message.id)
        found = subscribe(message, self.viewer, self._feed, self._wake.set, seq)
        self._subscriptions[message.id] = message, found
        if found.is_dirty:
            self._wake.set()

    def _drop(self, id: str) -> None:
        known = self._subscriptions.pop(id, None)
        if known is not None:
            known[1].end()

    # --- what goes ----------------------------------------

    def _reply(self, frame: Any) -> None:
        self._replies.append(frame)
        self._wake.set()

    def _say_hello(self) -> None:
        viewer = self.viewer
        seconds = self._options.recheck_seconds
        self._reply(protocol.hello(viewer.name, viewer.allowed, seconds))

    async def _write(self) -> Close | None:
        while True:
            self._wake.clear()
            frame, wait_seconds = self._next()
            if frame is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_seconds):
                        await self._wake.wait()
                continue
            began = time.monotonic()
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await self._send({"type": "websocket.send", "text": protocol.text(frame)})
            except TimeoutError:
                return Close.TOO_SLOW
            if time.monotonic() - began > SLOW_SECONDS:
                self._resync(Resync.INTERRUPTED)

    def _next(self) -> tuple[Any, float | None]:
        """Return the next frame; or None, and after how long there may be one."""
        if self._replies:
            self._has_room.set()
            return self._replies.popleft(), None
        now = time.monotonic()
        dirty = sorted(
            (s for _, s in self._subscriptions.values() if s.is_dirty), key=lambda s: s.due_at
        )
        for subscription in dirty:
            if subscription.due_at > now:
                return None, subscription.due_at - now
            frame = self._frame_of(subscription)
            if frame is not None:
                subscription.due_at = now + 1 / FRAMES_PER_SECOND
                return frame, None
        return None, None

    def _frame_of(self, subscription: Subscription) -> Any:
        try:
            return subscription.frame()
        except Refusal as refusal:
            self._drop(subscription.id)
            return protocol.error(refusal)

    def _resync(self, reason: Resync) -> None:
        for _, subscription in self._subscriptions.values():
            subscription.resync = reason
            subscription.touch()

    # --- who may stay ----------------------------------------

    async def _keep(self) -> Close | None:
        """Look at the session again and again; return why it may not stay."""
        while True:
            known_at = time.monotonic()
            # Early enough to try again; those who came together are not looked at together.
            pause = self._options.recheck_seconds * random.uniform(0.4, 0.6)
            if await self._is_dismissed_within(pause):
                return Close.LOGGED_OUT
            viewer = await self._look_until(known_at + self._options.recheck_seconds)
            if viewer is UNKNOWN:
                return Close.FAILED
            if viewer is None:
                return Close.LOGGED_OUT
            if not viewer.is_staff:
                return Close.FORBIDDEN
            if viewer != self.viewer:
                self._change(viewer)

    async def _look_until(self, deadline: float) -> Any:
        """Return who has the session, UNKNOWN if that cannot be found out until then."""
        while (left := deadline - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    return await look_again(self.viewer)
            except Exception as error:
                logger.debug("A session could not be looked at", exc_info=error)
                if await self._is_dismissed_within(min(RETRY_SECONDS, left)):
                    return None
        return UNKNOWN

    async def _is_dismissed_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._dismissed.wait()
        return self._dismissed.is_set()

    def _change(self, viewer: Viewer) -> None:
        """Go on with other permissions: what they no longer cover ends."""
        self.viewer = viewer
        self._say_hello()
        for message, old in list(self._subscriptions.values()):
            try:
                self._begin(message, old.seq)
            except Refusal as refusal:
                self._reply(protocol.error(refusal))
        self._resync(Resync.PERMISSIONS)


def _size(event: dict[str, Any]) -> int:
    """Return how many bytes a message has, or at least how many characters."""
    text, data = event.get("text") or "", event.get("bytes") or b""
    return max(len(data), len(text) if len(text) > MAX_MESSAGE_BYTES else len(text.encode()))


class Allowance:
    """Messages that a client may still send: `MAX_MESSAGES` in `MESSAGES_SECONDS`."""

    def __init__(self) -> None:
        self._left = float(MAX_MESSAGES)
        self._at = time.monotonic()

    def spend(self) -> bool:
        """Count one; return whether it was allowed."""
        now = time.monotonic()
        gained = (now - self._at) * MAX_MESSAGES / MESSAGES_SECONDS
        self._left = min(self._left + gained, float(MAX_MESSAGES))
        self._at = now
        self._left -= 1
        return self._left >= 0
