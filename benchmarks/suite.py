"""What is measured, in pairs, and how rounds are run: everything once, then all again.

Interleaving keeps a machine that warms up, or a neighbor, from favoring one side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks import django_loop, ours, raw_sql
from benchmarks.race import Lap, race


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to run, and over how many workers."""

    drain_jobs: int
    insert_jobs: int
    single_jobs: int
    bulk_jobs: int
    processes: int
    threads: int
    batch: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Contest:
    """Two ways to do the same work; `goal` is the ratio that ours should reach, if any."""

    name: str
    ours: str
    other: str
    goal: float | None


CONTESTS = (
    Contest("no-op drain", "jobqueue, no-op", "raw SQL, batches", 0.4),
    Contest("ORM insert", "jobqueue, ORM insert", "Django loop", 0.55),
    Contest("ORM insert, to raw SQL", "jobqueue, ORM insert", "raw SQL, exactly once", None),
    Contest("enqueue, one by one", "jobqueue, enqueue()", "raw SQL, INSERT", None),
    Contest("enqueue, many", "jobqueue, enqueue_many()", "raw SQL, INSERT many", None),
)

Measure = Callable[[], Lap]


def measures(url: str, plan: Plan) -> dict[str, Measure]:
    """Return what is run in each round, by name."""
    p, t = plan.processes, plan.threads
    share = plan.insert_jobs // (p * t)

    def raw_drain() -> Lap:
        raw_sql.fill(url, plan.drain_jobs)
        return race(raw_sql.drain, p, 1, url, plan.batch)

    def raw_exactly_once() -> Lap:
        raw_sql.fill(url, plan.insert_jobs)
        # A batch as large as what a jobqueue thread is given at a time: none waits for another.
        return race(raw_sql.exactly_once, p, t, url, 10)

    def loop() -> Lap:
        ours.reset()
        return race(django_loop.insert_rows, p, t, url, share)

    def raw_each() -> Lap:
        raw_sql.fill(url, 0)
        return race(raw_sql.insert_each, 1, 1, url, plan.single_jobs)

    def raw_chunks() -> Lap:
        raw_sql.fill(url, 0)
        return race(raw_sql.insert_chunks, 1, 1, url, plan.bulk_jobs, ours.CHUNK)

    return {
        "raw SQL, batches": raw_drain,
        "jobqueue, no-op": lambda: ours.drain_noops(plan.drain_jobs, p, t),
        "Django loop": loop,
        "jobqueue, ORM insert": lambda: ours.drain_inserts(plan.insert_jobs, p, t),
        "raw SQL, exactly once": raw_exactly_once,
        "raw SQL, INSERT": raw_each,
        "jobqueue, enqueue()": lambda: ours.enqueue_each(plan.single_jobs),
        "raw SQL, INSERT many": raw_chunks,
        "jobqueue, enqueue_many()": lambda: ours.enqueue_chunks(plan.bulk_jobs),
    }


def run(
    url: str, plan: Plan, names: Sequence[str], say: Callable[[str], None]
) -> dict[str, list[Lap]]:
    """Return the laps of each measure; with `names`, only of measures that contain one of them."""
    chosen = {
        name: measure
        for name, measure in measures(url, plan).items()
        if not names or any(part in name for part in names)
    }
    laps: dict[str, list[Lap]] = {name: [] for name in chosen}
    for number in range(plan.rounds):
        for name, measure in chosen.items():
            laps[name].append(measure())
            say(f"round {number + 1}/{plan.rounds}  {name}: {laps[name][-1].rate:,.0f} jobs/s")
    return laps


def rates(laps: dict[str, list[Lap]]) -> dict[str, float]:
    """Return the median rate of each measure."""
    return {name: median(lap.rate for lap in found) for name, found in laps.items()}
