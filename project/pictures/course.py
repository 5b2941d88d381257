"""The course of the incident: what becomes of each job, on which worker, and when.

    course = Course(now, seed=1)
    course.lives                    # every job, with its runs, as it is at `now`

Jobs come due, take the slot that is free first among those that serve their queue, fail as the
`story` says, wait for their retry, die; operators act at their times. Nothing is written here.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from uuid import UUID
from zoneinfo import ZoneInfo

from jobqueue.retry import Backoff
from jobqueue.states import State
from project.pictures import story
from project.pictures.lives import Life, Run, Slots, sku_of
from project.pictures.story import Crew, Failure

BACKOFF = Backoff(jitter=0)
JITTER = 0.15
CLAIM_SECONDS = (0.02, 0.4)
"""From due to started, where a slot is free."""
NOTICED_SECONDS = 16.0
"""From a worker's death until its jobs are taken back: about a lease."""


class Course:
    """All lives. tried, requeued, discarded: what operators chose, and of how many."""

    def __init__(
        self, now: datetime, seed: int = 1, order_seconds: float = story.ORDER_SECONDS
    ) -> None:
        self.now = now
        self.lives: list[Life] = []
        self.orders: list[datetime] = []
        self.tried: Life | None = None
        self.discarded: list[Life] = []
        self.requeued: list[Life] = []
        self.to_requeue = 0
        self._chance = random.Random(seed)
        self._events: list[tuple[datetime, int, Callable[[datetime], None]]] = []
        self._numbers = count()
        self.workers = [self._worker(crew) for crew in story.CREWS]
        self._begin(order_seconds)
        while self._events and self._events[0][0] <= now:
            at, _number, happen = heapq.heappop(self._events)
            happen(at)
        self.lives.sort(key=lambda life: life.id)

    def ago(self, minutes: float) -> datetime:
        """Return the time so many minutes before now."""
        return self.now - timedelta(minutes=minutes)

    def worker(self, crew: Crew) -> Slots:
        """Return a worker of the story."""
        return next(slots for slots in self.workers if slots.crew is crew)

    def dead(self, failure: Failure) -> list[Life]:
        """Return the dead letters of a failure, in the order of their ids."""
        found = [
            life for life in self.lives if life.state == State.DEAD and life.failure is failure
        ]
        return sorted(found, key=lambda life: life.id)

    # --- what happens by itself -----------------------------------------------------------------

    def _begin(self, order_seconds: float) -> None:
        self._at(self.ago(story.TRIED), self._try_one)
        self._at(self.ago(story.DISCARDED), self._discard)
        self._at(self.ago(story.REQUEUED), self._requeue)
        self._at(self.ago(story.REPORTED), self._report)
        for tick in self.nights():
            self._enqueue(tick + timedelta(seconds=0.3), story.REPORT, tick=tick)
        self._at(self.ago(60), self._write_newsletter)
        between = timedelta(seconds=order_seconds)
        at = self.ago(story.OPENED)
        while at < self.now:
            self._at(at, self._take_order)
            at += between * self._chance.uniform(0.4, 1.6)

    def nights(self) -> list[datetime]:
        """Return the ticks of the nightly report that have come, the oldest first."""
        night = self.now.astimezone(ZoneInfo("Europe/Paris"))
        last = night.replace(hour=2, minute=30, second=0, microsecond=0)
        ticks = [last - timedelta(days=days) for days in range(story.NIGHTS + 1)]
        return sorted(tick for tick in ticks if tick <= self.now)[-story.NIGHTS :]

    def _take_order(self, at: datetime) -> None:
        order = len(self.orders)
        self.orders.append(at)
        for task in (story.STOCK, story.CHARGE, story.MAIL):
            self._enqueue(at, task, order=order)

    def _enqueue(
        self,
        at: datetime,
        task: str,
        order: int | None = None,
        tick: datetime | None = None,
        by: str = "",
    ) -> Life:
        life = Life(self._id_of(at), task, at, order, tick, by)
        self.lives.append(life)
        self._at(at, partial(self._claim, life))
        return life

    def _claim(self, life: Life, at: datetime) -> None:
        """Start a job that is due; leave it ready where nothing takes it before now."""
        life.state = State.READY
        slots, slot = self._first_free(life)
        start = max(at, slots.free_at[slot]) + self._seconds(CLAIM_SECONDS)
        is_paused = life.queue == story.PAUSED_QUEUE and start >= self.ago(story.PAUSED)
        if start >= self.now or is_paused:
            return
        failure = self._failure_of(life, start)
        end = start + self._seconds(failure.seconds if failure else story.SECONDS[life.task])
        slots.free_at[slot] = end
        life.state, life.worker, life.claimed_at = State.RUNNING, slots, start
        self._kill(slots, start, end)
        self._at(end, partial(self._end, life, failure))

    def _first_free(self, life: Life) -> tuple[Slots, int]:
        """Return the slot that is free first, of those that may claim the job."""
        if life.by:  # whoever asked for it saw it begin there, just before it was drained
            leaving = self.worker(story.LEAVING)
            return leaving, leaving.free_at.index(min(leaving.free_at))
        serving = [
            (max(life.due_at, free_at), self._chance.random(), number, slot)
            for number, slots in enumerate(self.workers)
            for slot, free_at in enumerate(slots.free_at)
            if _serves(slots, life, max(life.due_at, free_at))
        ]
        _free_at, _tie, number, slot = min(serving)
        return self.workers[number], slot

    def _failure_of(self, life: Life, start: datetime) -> Failure | None:
        if life.task == story.MAIL and start >= self.ago(story.HUNG_UP):
            return story.NO_MAIL
        if life.task == story.STOCK and self._sku(life) == "kettle":
            is_out = self.ago(story.SOLD_OUT) <= start < self.ago(story.RESTOCKED)
            return story.NO_KETTLES if is_out else None
        if life.task == story.CHARGE and self._chance.random() < story.DECLINED_SHARE:
            return story.DECLINED
        return None

    def _sku(self, life: Life) -> str:
        return sku_of(life.order or 0)

    def _end(self, life: Life, failure: Failure | None, at: datetime) -> None:
        """End the run of a job: it succeeds, is retried, or dies."""
        assert life.worker is not None
        died_at = life.worker.ended_at if life.worker.crew.died is not None else None
        if died_at is not None and died_at < at:
            self._at(died_at + timedelta(seconds=NOTICED_SECONDS), partial(self._lose, life))
            return
        self._keep(life, at, failure)
        life.failures += failure is not None
        if failure is None:
            life.state, life.finished_at = State.SUCCEEDED, at
        elif failure.gives_up or life.failures >= story.MAX_ATTEMPTS:
            life.state, life.finished_at = State.DEAD, at
            life.reason = "gave up" if failure.gives_up else "out of attempts"
        else:
            jitter = self._chance.uniform(1 - JITTER, 1 + JITTER)
            life.due_at = at + timedelta(seconds=BACKOFF(life.failures) * jitter)
            life.state = State.RETRYING
            self._at(life.due_at, partial(self._claim, life))

    def _keep(self, life: Life, at: datetime, failure: Failure | None) -> None:
        assert life.worker is not None
        assert life.claimed_at is not None
        life.runs.append(Run(life.due_at, life.claimed_at, at, life.worker.id, failure))
        life.worker = life.claimed_at = None

    def _kill(self, slots: Slots, start: datetime, end: datetime) -> None:
        """Let the worker that died have died in the middle of a run, of about that time."""
        crew = slots.crew
        if crew.died is not None and slots.ended_at is None and end > self.ago(crew.died):
            slots.ended_at = start + (end - start) / 2

    def _lose(self, life: Life, at: datetime) -> None:
        """Take a job back from a worker that died."""
        self._keep(life, at, story.LOST)
        life.due_at = at
        self._claim(life, at)

    # --- what operators do ----------------------------------------------------------------------

    def _try_one(self, at: datetime) -> None:
        dead = self.dead(story.NO_MAIL)
        self.tried = dead[round(len(dead) * story.TRIED_PLACE)]
        self._revive(self.tried, at)

    def _discard(self, at: datetime) -> None:
        self.discarded = self.dead(story.NO_KETTLES)
        for life in self.discarded:
            life.state, life.finished_at = State.CANCELLED, at
            life.reason = story.DISCARDED_WHY

    def _requeue(self, at: datetime) -> None:
        """Requeue the first of the dead letters, evenly over the time that was asked for."""
        dead = self.dead(story.NO_MAIL)
        self.to_requeue = len(dead)
        self.requeued = dead[: round(len(dead) * story.REQUEUED_SHARE)]
        for number, life in enumerate(self.requeued):
            gap = story.SPREAD_SECONDS / len(dead)
            self._revive(life, at + timedelta(seconds=gap * number))

    def _revive(self, life: Life, due_at: datetime) -> None:
        life.state, life.due_at, life.failures = State.SCHEDULED, due_at, 0
        life.finished_at, life.reason = None, ""
        self._at(due_at, partial(self._claim, life))

    def _report(self, at: datetime) -> None:
        self._enqueue(at, story.REPORT, by="lee")

    def _write_newsletter(self, at: datetime) -> None:
        life = Life(self._id_of(at), story.NEWSLETTER, at)
        life.state, life.reason = State.BLOCKED, "unknown task"
        self.lives.append(life)

    # --- parts ----------------------------------------------------------------------------------

    def _at(self, at: datetime, happen: Callable[[datetime], None]) -> None:
        heapq.heappush(self._events, (at, next(self._numbers), happen))

    def _worker(self, crew: Crew) -> Slots:
        identity = UUID(int=self._chance.getrandbits(128), version=4)
        drained = None if crew.drained is None else self.ago(crew.drained)
        return Slots(crew, identity, drained, [self.ago(crew.started)] * crew.slots)

    def _id_of(self, at: datetime) -> UUID:
        """Return an id as it would have been drawn then: lists are sorted by it."""
        milliseconds = int(at.timestamp() * 1_000)
        tail = self._chance.getrandbits(74)
        low = 0x2 << 62 | tail & ((1 << 62) - 1)
        return UUID(int=milliseconds << 80 | 0x7 << 76 | (tail >> 62) << 64 | low)

    def _seconds(self, bounds: tuple[float, float]) -> timedelta:
        return timedelta(seconds=self._chance.uniform(*bounds))


def _serves(slots: Slots, life: Life, at: datetime) -> bool:
    """Return whether a worker would claim a job at a time: it has to live, and not to drain."""
    takes = not slots.crew.queues or life.queue in slots.crew.queues
    latest = at + timedelta(seconds=CLAIM_SECONDS[1])
    return takes and (slots.ended_at is None or latest < slots.ended_at)
