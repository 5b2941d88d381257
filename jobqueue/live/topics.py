"""What there is to look at: sources, each looked at once however many watch it.

A source has the last snapshot that was taken of it, an object that is never changed. Which sources
a subscription needs is decided in `jobqueue.live.subscriptions`; when they are looked at, in
`jobqueue.live.feed`. `look` is called in the feed's thread and touches nothing but the database;
everything else happens in the event loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from jobqueue.engine.counts import Count
from jobqueue.engine.watching import Mark, Present, Watch
from jobqueue.filters import Filter
from jobqueue.states import State

Documents = Mapping[Any, dict[str, Any]]
"""Documents by what names them."""

FAILED: Any = object()
"""Instead of a snapshot: what is asked for makes the database raise an error."""
STEADY_SECONDS = 1.0
"""Two readings of one moment, reckoned back from two clocks, differ by less."""


class Source:
    """One thing to look at; `key` tells it from others, `listeners` are told of new snapshots."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.listeners: set[Callable[[], None]] = set()
        self.snapshot: Any = None
        self.is_fresh = False
        self.looked_at = float("-inf")
        self.due_at = float("-inf")
        self.mark: str | None = None

    def ask_anew(self) -> None:
        """Look at it in the next turn, whether or not anything was committed."""
        self.mark = None
        self.due_at = float("-inf")

    def question(self) -> Any:
        """Return what the next look asks for: a value that the loop does not change meanwhile."""
        return None

    def look(self, watch: Watch, question: Any) -> Any:
        """Return a snapshot."""
        raise NotImplementedError

    def publish(self, snapshot: Any) -> None:
        """Keep a snapshot, and tell who listens if it is another one."""
        is_new = not self.is_fresh or snapshot != self.snapshot
        self.is_fresh = True
        self.snapshot = snapshot
        if is_new:
            for listener in tuple(self.listeners):
                listener()


# --- the whole ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whole:
    """The documents of the topics stats, queues and workers, and as of when they are."""

    as_of: str = field(compare=False)
    stats: dict[str, Any]
    queues: Documents
    workers: Documents


class WholeSource(Source):
    """Counts, queues and workers: one look for three topics."""

    def __init__(self) -> None:
        super().__init__("whole")
        self._since: dict[str, datetime | None] = {}

    def look(self, watch: Watch, question: Any) -> Whole:
        """Return the documents."""
        present = watch.present()
        self._since = {
            q.name: self._steady(present, q.name, q.oldest_ready_seconds) for q in present.queues
        }
        oldest = min((at for at in self._since.values() if at is not None), default=None)
        return Whole(
            as_of=present.as_of.isoformat(),
            stats=_stats(present, oldest),
            queues={q.name: _queue(q, self._since[q.name]) for q in present.queues},
            workers={id: _worker(id, *mark) for id, mark in present.workers.items()},
        )

    def _steady(self, present: Present, queue: str, seconds: float | None) -> datetime | None:
        """Return since when the oldest job is ready: the same as before if it is the same job."""
        if seconds is None:
            return None
        at = present.as_of - timedelta(seconds=seconds)
        before = self._since.get(queue)
        if before is not None and abs((at - before).total_seconds()) < STEADY_SECONDS:
            return before
        return at


def _stats(present: Present, oldest: datetime | None) -> dict[str, Any]:
    conditions = Counter(mark.condition for mark in present.workers.values())
    return {
        "counts": {state: _count(count) for state, count in present.counts.items()},
        "oldest_ready_at": _time(oldest),
        "workers": {name: conditions[name] for name in ("alive", "draining", "expired")},
        "paused_queues": sum(queue.paused for queue in present.queues),
        "attempts": present.attempts,
        "rolled_up_at": _time(present.rolled_up_at),
    }


def _queue(queue: Any, since: datetime | None) -> dict[str, Any]:
    return {
        "name": queue.name,
        "ready": _count(queue.ready),
        "oldest_ready_at": _time(since),
        "paused": queue.paused,
        "paused_by": queue.paused_by,
        "paused_reason": queue.paused_reason,
    }


def _worker(id: UUID, condition: str, running: int) -> dict[str, Any]:
    return {"id": str(id), "condition": condition, "running": running}


def _count(count: Count) -> dict[str, Any]:
    return {"value": count.value, "relation": count.relation}


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


# --- jobs -----------------------------------------------------------------------------------------


class PageSource(Source):
    """The first page of the jobs that match a filter, of one owner or of all."""

    def __init__(
        self, chosen: Filter, default: frozenset[State], size: int, owner: str | None
    ) -> None:
        super().__init__(("page", str(chosen), default, size, owner))
        self._ask = (chosen, size, default, owner)

    def look(self, watch: Watch, question: Any) -> dict[UUID, Mark]:
        """Return the jobs of the page."""
        return watch.page(*self._ask)


class MarksSource(Source):
    """The jobs that anybody watches by id, of one owner or of all: None for one that is gone."""

    def __init__(self, owner: str | None) -> None:
        super().__init__(("marks", owner))
        self._owner = owner
        self._watched: Counter[UUID] = Counter()

    def __len__(self) -> int:
        return len(self._watched)

    def add(self, ids: Iterable[UUID]) -> None:
        """Watch these too."""
        self._watched.update(ids)
        self.ask_anew()

    def drop(self, ids: Iterable[UUID]) -> None:
        """Watch these no more, unless somebody else does."""
        self._watched.subtract(ids)
        self._watched = +self._watched

    def question(self) -> frozenset[UUID]:
        """Return the ids."""
        return frozenset(self._watched)

    def look(self, watch: Watch, question: frozenset[UUID]) -> dict[UUID, Mark | None]:
        """Return how they are."""
        found = watch.marks(question, self._owner)
        return {id: found.get(id) for id in question}


class JobSource(Source):
    """One job, as one owner or everybody sees it: its document, None if it is not there."""

    def __init__(self, job: UUID, owner: str | None) -> None:
        super().__init__(("job", job, owner))
        self._ask = (job, owner)

    def look(self, watch: Watch, question: Any) -> dict[str, Any] | None:
        """Return its document."""
        facts = watch.facts(*self._ask)
        if facts is None:
            return None
        progress = facts.progress and dict(zip(("done", "total"), facts.progress, strict=True))
        return {"id": str(self._ask[0]), **facts._asdict(), "progress": progress}
