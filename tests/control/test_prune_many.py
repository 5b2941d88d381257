"""Pruning ten thousand jobs: small batches, several pruners, and never in anybody's way."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobqueue import control
from jobqueue.conf import options_for
from jobqueue.engine import retention
from jobqueue.ids import new_job_id
from jobqueue.models import Action, Job
from jobqueue.storage.records import Success
from tests.control.test_bulk import hold, release
from tests.storage.making import buried, claim, insert, multiply, register

DAY = 86_400.0
COUNT = 10_000


@pytest.fixture
def old(storage) -> list:
    """Ten thousand jobs that were cancelled long ago; ids ascend."""
    first = insert(storage)[0]
    long_ago = timezone.now() - timedelta(days=90)
    Job.objects.update(state="cancelled", enqueued_at=long_ago, finished_at=long_ago)
    ids = sorted(new_job_id() for _ in range(COUNT - 1))
    multiply(first, ids)
    return [first, *ids]


def test_jobs_go_in_small_batches_of_a_transaction_each(storage, actor, old):
    seen = []
    with CaptureQueriesContext(connection) as asked:
        outcome = control.prune(actor, older_than=7 * DAY, progress=seen.append)

    assert str(outcome) == f"{COUNT} pruned"
    batches = [after - before for before, after in zip([0, *seen], seen, strict=False)]
    assert max(batches) <= retention.PRUNE_BATCH
    assert len(batches) <= 2 * COUNT / retention.PRUNE_BATCH
    # As many statements a batch whatever its size: none is sent for a single job.
    assert len(asked) <= 16 * len(batches) + 20
    assert Action.objects.get().count == COUNT


def test_pruning_stops_between_two_batches_when_it_is_told_to(storage, old):
    stops = iter([False, False, True])
    pruned = retention.prune(
        storage, options_for("default"), lambda: next(stops, True), {"cancelled": 7 * DAY}
    )
    assert 0 < pruned["cancelled"] <= 2 * retention.PRUNE_BATCH
    assert Job.objects.count() == COUNT - pruned["cancelled"]


def test_three_pruners_at_once_leave_what_is_locked_and_hold_up_nobody(
    storage, other, open_storage, old
):
    """Meanwhile a worker finishes its jobs, and an operator holds an old row."""
    worker = register(storage)
    insert(storage, 200)
    claims = claim(storage, worker, limit=200)
    dead = buried(storage, worker)
    holder = hold(other, old[7]) if storage.vendor == "postgresql" else None
    counts, errors = [], []

    def prune(own):
        try:
            pruned = retention.prune(own, options_for("default"), retention={"cancelled": 7 * DAY})
            counts.append(pruned["cancelled"])
        except Exception as error:
            errors.append(error)

    pruners = [threading.Thread(target=prune, args=(open_storage(),)) for _ in range(3)]
    for pruner in pruners:
        pruner.start()
    refused = [
        lost
        for held in claims
        for lost in storage.finish_many(worker, [Success(held.id, held.fence, "1", 0.0, 0.0)])
    ]
    for pruner in pruners:
        pruner.join(120)
    if holder is not None:
        release(holder)

    assert (errors, refused) == ([], [])
    kept = 0 if holder is None else 1
    assert sum(counts) == COUNT - kept
    assert Job.objects.filter(state="cancelled").count() == kept
    assert Job.objects.filter(state="succeeded").count() == 200
    assert Job.objects.get(id=dead).state == "dead"
