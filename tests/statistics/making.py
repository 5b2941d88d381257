"""Attempts as they would be after any history, and what their rollups have to be."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from jobqueue.histogram import Histogram, bucket_of, load
from jobqueue.ids import new_job_id
from jobqueue.models import Attempt, Rollup
from jobqueue.states import Outcome

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WORKER = UUID("00000000-0000-4000-8000-000000000001")
OTHER_WORKER = UUID("00000000-0000-4000-8000-000000000002")


def attempt(
    ended: datetime = NOON, *, waited: float | None = 2.0, ran: float = 0.5, **changes: Any
) -> Attempt:
    """Return an attempt, not saved, that waited and ran for some seconds and ended then."""
    started = ended - timedelta(seconds=ran)
    fields: dict[str, Any] = {
        "job_id": new_job_id(),
        "number": 1,
        "fence": 1,
        "worker": WORKER,
        "task": "shop.mail",
        "queue": "default",
        "outcome": "succeeded",
        "charged": False,
        "due_at": None if waited is None else started - timedelta(seconds=waited),
        "started_at": started,
        "finished_at": ended,
    }
    return Attempt(**fields | changes)


def record(*attempts: Attempt) -> list[Attempt]:
    """Save attempts as if they had ended one after the other."""
    return Attempt.objects.bulk_create(attempts)


def failure(ended: datetime = NOON, **changes: Any) -> Attempt:
    fields = {
        "outcome": "failed",
        "charged": True,
        "error_class": "builtins.ValueError",
        "error_message": "no order 17",
        "error_fingerprint": "f" * 32,
    }
    return attempt(ended, **fields | changes)


Sums = tuple[Counter[str], Any, Any, Histogram, Histogram]


def expected() -> dict[tuple[Any, ...], Sums]:
    """Return what the rollups of tasks and workers have to be, from all attempts there are."""
    found: dict[tuple[Any, ...], Sums] = {}
    for one in Attempt.objects.all():
        minute = one.finished_at.replace(second=0, microsecond=0)
        for seconds, at in ((60, minute), (3600, minute.replace(minute=0))):
            for key in (("task", one.queue, one.task), ("worker", "", one.worker.hex)):
                _count(found, (seconds, at, *key), one)
    return {
        key: (outcomes, pytest.approx(waited), pytest.approx(ran), waits, runs)
        for key, (outcomes, waited, ran, waits, runs) in found.items()
    }


def _count(found: dict[tuple[Any, ...], Sums], key: tuple[Any, ...], one: Attempt) -> None:
    outcomes, waited, ran, waits, runs = found.get(
        key, (Counter[str](), 0.0, 0.0, Histogram(), Histogram())
    )
    outcomes[one.outcome] += 1
    if one.due_at is not None:
        wait = max((one.started_at - one.due_at).total_seconds(), 0.0)
        waited += wait
        waits[bucket_of(wait)] += 1
    if one.outcome != "lost":
        run = (one.finished_at - one.started_at).total_seconds()
        ran += run
        runs[bucket_of(run)] += 1
    found[key] = (outcomes, waited, ran, waits, runs)


def counted(*kinds: str) -> dict[tuple[Any, ...], Sums]:
    """Return what the rollups are."""
    return {
        (row.seconds, row.at, row.kind, row.queue, row.name): (
            Counter({o.value: n for o in Outcome if (n := getattr(row, o.value))}),
            row.wait_seconds,
            row.run_seconds,
            load(row.waits),
            load(row.runs),
        )
        for row in Rollup.objects.filter(kind__in=kinds or ("task", "worker"))
    }
