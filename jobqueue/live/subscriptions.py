"""What one viewer was told of one topic, and what is new since: computed when it can be sent.

A subscription keeps what it has told, never what it will tell: the next event is the difference to
the newest snapshot of its sources. So a viewer that reads once a minute gets one event a minute,
and costs no more than that one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from jobqueue.engine.watching import Mark
from jobqueue.exceptions import InvalidFilter
from jobqueue.filters import DEFAULT_STATES, Filter, parse, refusal_of
from jobqueue.live import protocol
from jobqueue.live.doors import Viewer
from jobqueue.live.feed import Feed, FeedFull
from jobqueue.live.protocol import (
    MAX_CHANGES,
    PROBLEMS,
    JobParams,
    JobsParams,
    Refusal,
    Resync,
    Subscribe,
    Topic,
)
from jobqueue.live.topics import (
    FAILED,
    JobSource,
    MarksSource,
    PageSource,
    Source,
    Whole,
    WholeSource,
)
from jobqueue.permissions import VIEW, VIEW_PAYLOAD, permission_for
from jobqueue.states import State

NOTHING: Any = object()
MAX_WATCHED_IN_ALL = 20_000
"""Jobs that one process watches by id: half a second of its feed's time."""


class Subscription:
    """One subscription; the first event tells all there is, later ones what differs."""

    def __init__(self, id: str, feed: Feed, wake: Callable[[], None], seq: int = 0) -> None:
        self.id = id
        self.seq = seq
        self.is_dirty = False
        self.due_at = 0.0
        self.resync: Resync | None = None
        self._feed = feed
        self._wake = wake
        self._sources: list[Source] = []
        self._interruptions = feed.interruptions
        self._is_first = True

    def end(self) -> None:
        """Watch no more."""
        for source in self._sources:
            self._feed.leave(source, self.touch)
        self._sources.clear()

    def touch(self) -> None:
        """There may be something new."""
        self.is_dirty = True
        self._wake()

    def frame(self) -> Any:
        """Return the next frame, None if nothing is new. Raise Refusal if it is over."""
        self.is_dirty = False
        if any(source.snapshot is FAILED for source in self._sources):
            raise Refusal("unavailable", PROBLEMS["unavailable"][1], self.id)
        if not all(source.is_fresh for source in self._sources):
            return None
        if self._feed.interruptions != self._interruptions:
            self._interruptions = self._feed.interruptions
            self.resync = self.resync or Resync.INTERRUPTED
        changes = self.changes()
        reason = self.resync
        if reason is None and len(changes) > MAX_CHANGES and not self._is_first:
            reason = Resync.MANY_CHANGES
        if not (changes or reason or self._is_first):
            return None
        self.seq += 1
        self._is_first, self.resync = False, None
        if reason is not None:
            self.forget()
            return protocol.resync(self.id, self.seq, reason)
        return protocol.event(self.id, self.seq, changes)

    def changes(self) -> Any:
        """Return what differs from what was told, and take it for told."""
        raise NotImplementedError

    def forget(self) -> None:
        """Tell all there is in the next event, where nothing but events tells it."""

    def _join[S: Source](self, source: S) -> S:
        try:
            joined = self._feed.join(source, self.touch)
        except FeedFull:
            self.end()
            raise _full(self.id) from None
        self._sources.append(joined)
        self.is_dirty = joined.is_fresh
        return joined


def _full(id: str) -> Refusal:
    return Refusal("unavailable", "This server watches as many things as it can: poll.", id)


# --- stats, queues, workers -----------------------------------------------------------------------


class StatsSubscription(Subscription):
    """Members of one document."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._told: dict[str, Any] = {}
        self._source = self._join(WholeSource())

    def changes(self) -> dict[str, Any]:
        """Return the members that differ, with the time of the look."""
        whole: Whole = self._source.snapshot
        new = {k: v for k, v in whole.stats.items() if self._told.get(k, NOTHING) != v}
        self._told = whole.stats
        return new | {"as_of": whole.as_of} if new else {}

    def forget(self) -> None:
        """Tell all members again: some are in no answer of the API."""
        self._told = {}
        self.touch()


class ListSubscription(Subscription):
    """Documents with names: of queues, or of workers."""

    def __init__(self, topic: Topic, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name, self._part = ("name", "queues") if topic is Topic.QUEUES else ("id", "workers")
        self._told: Mapping[Any, dict[str, Any]] = {}
        self._source = self._join(WholeSource())

    def changes(self) -> list[dict[str, Any]]:
        """Return the documents that differ, and the names of those that are gone."""
        now: Mapping[Any, dict[str, Any]] = getattr(self._source.snapshot, self._part)
        gone = [{self._name: str(key), "gone": True} for key in self._told if key not in now]
        new = [document for key, document in now.items() if self._told.get(key) != document]
        self._told = now
        return gone + new


# --- jobs -----------------------------------------------------------------------------------------


class JobsSubscription(Subscription):
    """The watched jobs, and those that belong on the first page besides."""

    def __init__(
        self,
        params: JobsParams,
        chosen: Filter,
        owner: str | None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        # Versions only: whatever state goes with it, a newer version is told of.
        self._told: dict[UUID, Mark | None] = {id: Mark("", v) for id, v in params.watch.items()}
        self._watched = frozenset(params.watch)
        self._oldest = min(self._watched, default=None)
        self._is_full = params.size is not None and len(self._watched) >= params.size
        self._marks = self._join(MarksSource(owner))
        if len(self._marks) > MAX_WATCHED_IN_ALL:
            super().end()
            raise _full(self.id)
        self._marks.add(self._watched)
        self._page: PageSource | None = None
        if params.size is not None:
            default = DEFAULT_STATES if params.filter.strip() else frozenset(State)
            self._page = self._join(PageSource(chosen, default, params.size, owner))
        self._feed.hurry()

    def end(self) -> None:
        """Watch no more."""
        if self._sources:
            self._marks.drop(self._watched)
        super().end()

    def changes(self) -> list[dict[str, Any]]:
        """Return the jobs that differ, and those that are new."""
        marks: Mapping[UUID, Mark | None] = self._marks.snapshot
        seen = {id: marks[id] for id in self._watched if id in marks}
        page = self._entered()
        changes = [_job(id, mark) for id, mark in seen.items() if self._is_news(id, mark)]
        changes += [
            _job(id, mark) | {"new": True} for id, mark in page.items() if self._is_news(id, mark)
        ]
        kept = {id: told for id, told in self._told.items() if id in self._watched or id in page}
        self._told = {**kept, **seen, **page}
        return changes

    def frame(self) -> Any:
        """Return the next frame, as soon as all that is watched has been looked at."""
        snapshot = self._marks.snapshot
        if self._is_first and isinstance(snapshot, dict) and not self._watched <= snapshot.keys():
            self.is_dirty = False
            return None
        return super().frame()

    def _is_news(self, id: UUID, mark: Mark | None) -> bool:
        told = self._told.get(id, NOTHING)
        if told is NOTHING or mark is None or told is None:
            return told is not mark
        return bool(mark.version > told.version)

    def _entered(self) -> dict[UUID, Mark]:
        """Return the jobs of the first page that are not watched, and not older than all of it."""
        page: Mapping[UUID, Mark] = {} if self._page is None else self._page.snapshot
        return {
            id: mark
            for id, mark in page.items()
            if id not in self._watched
            and not (self._is_full and self._oldest is not None and id < self._oldest)
        }


def _job(id: UUID, mark: Mark | None) -> dict[str, Any]:
    if mark is None:
        return {"id": str(id), "gone": True}
    return {"id": str(id), "state": mark.state, "version": mark.version}


class JobSubscription(Subscription):
    """One job."""

    def __init__(self, params: JobParams, owner: str | None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._job = str(params.job)
        self._told: Any = NOTHING
        self._source = self._join(JobSource(params.job, owner))

    def changes(self) -> list[dict[str, Any]]:
        """Return the job if it differs. Raise Refusal if it was never there."""
        now = self._source.snapshot
        if now is None and self._told is NOTHING:
            raise Refusal("job-not-found", PROBLEMS["job-not-found"][1], self.id)
        if now == self._told:
            return []
        self._told = now
        return [{"id": self._job, "gone": True} if now is None else now]


# --- who may have which ---------------------------------------------------------------------------


def subscribe(
    message: Subscribe, viewer: Viewer, feed: Feed, wake: Callable[[], None], seq: int = 0
) -> Subscription:
    """Return the subscription that a message asks for. Raise Refusal if the viewer may not."""
    rest = (message.id, feed, wake, seq)
    owner = None if viewer.may(VIEW) else viewer.owner
    if isinstance(message.params, JobsParams):
        chosen = _chosen(message, message.params.filter, viewer)
        return JobsSubscription(message.params, chosen, owner, *rest)
    if isinstance(message.params, JobParams):
        return JobSubscription(message.params, owner, *rest)
    if owner is not None:
        raise _denied(message, VIEW, f"The topic {message.topic} is about everybody's jobs")
    if message.topic is Topic.STATS:
        return StatsSubscription(*rest)
    return ListSubscription(message.topic, *rest)


def _chosen(message: Subscribe, text: str, viewer: Viewer) -> Filter:
    try:
        chosen = parse(text)
    except InvalidFilter as error:
        raise Refusal("invalid-filter", str(error), message.id) from None
    refusal = refusal_of(chosen, viewer.may(VIEW_PAYLOAD))
    if refusal is None:
        return chosen
    if refusal.permission:
        raise Refusal("permission-denied", str(refusal), message.id, refusal.permission)
    raise Refusal("invalid-filter", str(refusal), message.id)


def _denied(message: Subscribe, action: str, what: str) -> Refusal:
    permission = permission_for(action)
    return Refusal("permission-denied", f"{what}: it needs {permission}.", message.id, permission)
