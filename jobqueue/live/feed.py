"""The feed: one a process, however many watch. It asks while somebody looks, and tells all who do.

Four times a second it asks the database for its mark of changes, which no table is read for; only
if something was committed since, or `STALE_SECONDS` have passed (leases run out without a commit),
are the sources looked at. Looks have a share of the time (`SHARE`): where one takes long, there are
fewer. With nobody there it asks nothing, and its session is closed.

Snapshots are shared, and what each viewer is told is computed from them when it can be sent: so
neither a viewer that does not read nor a burst of changes makes anything grow.

If the database cannot be asked, the feed tries again with back-off, and `lag_seconds` says for how
long it has known nothing; afterwards everybody is told to ask the API again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from jobqueue.engine.watching import Watch
from jobqueue.events import emit, line_of
from jobqueue.live.protocol import FRAMES_PER_SECOND
from jobqueue.live.topics import FAILED, Source

logger = logging.getLogger("jobqueue")

PAUSE_SECONDS = 1 / FRAMES_PER_SECOND
"""Between two looks, at least: more often nobody is told."""
SHARE = 0.2
"""Most of the time that the feed's one session may be busy; and half of that for one source."""
MAX_PAUSE_SECONDS = 2.0
"""Between two looks, at most: a page is to agree with the API within five seconds."""
STALE_SECONDS = 4.0
"""A source is looked at so often, whatever the mark says."""
TURN_SECONDS = 0.5
"""After so long a turn ends; sources that were not reached come first in the next."""
MAX_SOURCES = 300
"""Different things that are watched in one process: filters, above all."""
HURRY_SECONDS = 0.02
"""Between two looks because of somebody new: a crowd that comes at once is served together."""
MAX_BACKOFF_SECONDS = 4.0
INTERRUPTED_SECONDS = 5.0
"""Whoever was not told anything for longer, because the database was away, is to ask again."""


class FeedFull(Exception):
    """More sources than one process looks at."""


class Feed:
    """Looks at sources for those who listen; used from one event loop. See the module."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._sources: dict[Any, Source] = {}
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._asked_at = 0.0
        self._backoff = 0.0
        self.interruptions = 0

    @property
    def lag_seconds(self) -> float | None:
        """Seconds since the database was last asked, None if nobody watches."""
        return time.monotonic() - self._asked_at if self._sources else None

    def join[S: Source](self, source: S, listener: Callable[[], None]) -> S:
        """Listen to the source that is like `source`; return it. Raise FeedFull."""
        known = self._sources.get(source.key)
        if known is None:
            if len(self._sources) >= MAX_SOURCES:
                raise FeedFull
            known = self._sources[source.key] = source
        known.listeners.add(listener)
        self._start()
        return known  # type: ignore[return-value] # equal keys are of one class

    def leave(self, source: Source, listener: Callable[[], None]) -> None:
        """Listen no more."""
        source.listeners.discard(listener)
        if not source.listeners and self._sources.get(source.key) is source:
            del self._sources[source.key]
            self._wake.set()

    def hurry(self) -> None:
        """Look at once: something new is watched."""
        self._wake.set()

    # --- the loop ----------------------------------------

    def _start(self) -> None:
        self._wake.set()
        if self._task is None or self._task.done():
            self._asked_at = time.monotonic()
            self._task = asyncio.get_running_loop().create_task(self._run(), name="jobqueue-live")

    async def _run(self) -> None:
        """Look while anybody listens."""
        executor = ThreadPoolExecutor(1, "jobqueue-live")
        watch = Watch(self._backend)
        try:
            while self._sources:
                began = time.monotonic()
                try:
                    await self._turn(executor, watch)
                except Exception as error:
                    executor.submit(watch.close)
                    await asyncio.sleep(self._failed(error))
                else:
                    await self._rest(time.monotonic() - began)
        finally:
            executor.submit(watch.close)
            executor.shutdown(wait=False)

    async def _turn(self, executor: ThreadPoolExecutor, watch: Watch) -> None:
        """Look at what is due, the longest overdue first, and tell who listens."""
        now = time.monotonic()
        due = sorted(self._sources.values(), key=lambda source: source.due_at)
        asked = [(source, source.question()) for source in due if source.due_at <= now]
        loop = asyncio.get_running_loop()
        mark, looks = await loop.run_in_executor(executor, _look, watch, asked)
        self._succeeded()
        for look in looks:
            look.keep(mark)

    async def _rest(self, cost_seconds: float) -> None:
        """Wait for the next turn: as `SHARE` demands, or shorter if somebody new has come."""
        share = cost_seconds * (1 / SHARE - 1)
        longest = min(max(PAUSE_SECONDS - cost_seconds, share), MAX_PAUSE_SECONDS)
        shortest = min(max(HURRY_SECONDS, cost_seconds), longest)
        self._wake.clear()
        await asyncio.sleep(shortest)
        try:
            async with asyncio.timeout(longest - shortest):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _succeeded(self) -> None:
        now = time.monotonic()
        lag, self._asked_at = now - self._asked_at, now
        if self._backoff:
            emit("live.recovered", seconds=round(lag, 1))
        self._backoff = 0.0
        if lag > INTERRUPTED_SECONDS:
            self.interruptions += 1
            for source in self._sources.values():
                source.is_fresh = False  # tells everybody, also that nothing has changed

    def _failed(self, error: Exception) -> float:
        if not self._backoff:
            emit("live.failing", level=logging.WARNING, error=line_of(error))
            logger.debug("The live page's feed failed", exc_info=error)
        self._backoff = min(max(self._backoff * 2, PAUSE_SECONDS), MAX_BACKOFF_SECONDS)
        return self._backoff


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a source has brought: a snapshot, or `FAILED`."""

    source: Source
    question: Any
    snapshot: Any
    began: float
    ended: float

    def keep(self, mark: str) -> None:
        """Hand it to the source; in the event loop, which alone changes sources."""
        source = self.source
        if source.question() != self.question:
            mark_seen = None  # somebody asks for more by now
        else:
            mark_seen = mark
            pause = (self.ended - self.began) * (2 / SHARE - 1)
            least = PAUSE_SECONDS / 2  # a turn that begins a little early is not in vain
            source.due_at = self.ended + min(max(pause, least), MAX_PAUSE_SECONDS)
        source.mark, source.looked_at = mark_seen, self.began
        source.publish(self.snapshot)


def _look(watch: Watch, asked: Sequence[tuple[Source, Any]]) -> tuple[str, list[Look]]:
    """Look at those sources that may have changed; in the feed's thread."""
    began = time.monotonic()
    mark = watch.mark()
    looks: list[Look] = []
    for source, question in asked:
        now = time.monotonic()
        if looks and now - began > TURN_SECONDS:
            break
        if source.mark != mark or now - source.looked_at > STALE_SECONDS:
            snapshot = _look_at(source, watch, question)
            looks.append(Look(source, question, snapshot, now, time.monotonic()))
    return mark, looks


def _look_at(source: Source, watch: Watch, question: Any) -> Any:
    """Return a snapshot; `FAILED` if it is this source that cannot be looked at, and not all."""
    try:
        return source.look(watch, question)
    except Exception as error:
        watch.close()
        watch.mark()  # raises if the database is away: that is no fault of the source
        emit("live.source_failed", level=logging.WARNING, source=source.key, error=line_of(error))
        logger.debug("One thing that is watched cannot be looked at", exc_info=error)
        return FAILED


_feeds: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Feed]] = WeakKeyDictionary()


def feed_of(backend: str) -> Feed:
    """Return the feed of the running event loop: a server's process has one."""
    feeds = _feeds.setdefault(asyncio.get_running_loop(), {})
    if backend not in feeds:
        feeds[backend] = Feed(backend)
    return feeds[backend]
