"""Every attempt says since when it could have run, however it ended: before a retry moves that."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from jobqueue.storage import Storage
from jobqueue.storage.records import Claim, Success
from tests.storage.making import attempts, claim, claimed, ending, insert, register, row

Ways = dict[str, Callable[[Storage, Claim], object]]
WAYS: Ways = {
    "finish": lambda s, held: s.finish_one(held, "null", 0.0),
    "finish in a batch": lambda s, held: s.finish_many(
        held.worker, [Success(held.id, held.fence, "null", 0.0, 0.0)]
    ),
    "retry": lambda s, held: s.end_many([ending(held, "retrying", outcome="failed", delay=60.0)]),
    "lost": lambda s, held: s.end_many([ending(held, "ready", outcome="lost")]),
    "forced cancel": lambda s, held: s.force_cancel(held.id, held.fence, held.worker, "test"),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_attempt_was_due_when_its_job_was(storage: Storage, way: str) -> None:
    now = storage.clock()
    insert(storage, delay=60.0, now=now - timedelta(seconds=90))
    storage.promote(10)
    (held,) = claim(storage, register(storage))
    WAYS[way](storage, held)
    (attempt,) = attempts(held.id)
    assert abs(attempt.due_at - (now - timedelta(seconds=30))) < timedelta(milliseconds=1)


def test_a_job_that_was_enqueued_late_was_not_due_before(storage: Storage) -> None:
    held = claimed(storage, run_at=storage.clock() - timedelta(days=1))
    storage.finish_one(held, "null", 0.0)
    (attempt,) = attempts(held.id)
    assert attempt.due_at == row(held.id).enqueued_at
