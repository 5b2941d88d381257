"""What the course of the incident is made of: workers with their slots, jobs and their runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from jobqueue.states import State
from project.pictures import story
from project.pictures.story import Crew, Failure


@dataclass(slots=True)
class Slots:
    """A worker: what the story says of it, and when each of its slots is free again."""

    crew: Crew
    id: UUID
    ended_at: datetime | None
    free_at: list[datetime]


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt that has ended. failure: None if it succeeded."""

    due_at: datetime
    started_at: datetime
    finished_at: datetime
    worker: UUID
    failure: Failure | None


@dataclass(slots=True)
class Life:
    """A job, from its enqueue until now."""

    id: UUID
    task: str
    enqueued_at: datetime
    order: int | None = None
    tick: datetime | None = None
    by: str = ""
    due_at: datetime = field(init=False)
    state: State = State.READY
    runs: list[Run] = field(default_factory=list)
    failures: int = 0
    worker: Slots | None = None
    claimed_at: datetime | None = None
    finished_at: datetime | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        self.due_at = self.enqueued_at

    @property
    def queue(self) -> str:
        return story.QUEUES[self.task]

    @property
    def failure(self) -> Failure | None:
        """The last failure; None if it has succeeded since, or has never failed."""
        return next((run.failure for run in reversed(self.runs) if run.failure), None)


def sku_of(order: int) -> str:
    """Return what was ordered."""
    return story.SKUS[order % len(story.SKUS)]


def outcomes(lives: list[Life]) -> Iterator[tuple[Life, int, Run]]:
    """Yield each run with its life and number, as they ended: so their rows were written."""
    runs = [(life, n, run) for life in lives for n, run in enumerate(life.runs, start=1)]
    yield from sorted(runs, key=lambda each: (each[2].finished_at, each[0].id))
