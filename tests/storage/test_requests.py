"""Requests to cancel running jobs: rows of their own, beside jobs that nobody else may write."""

from datetime import timedelta

from django.utils import timezone

from jobqueue.models import CancelRequest
from jobqueue.storage.records import Success
from tests.storage.making import buried, claimed, ending, insert, row


def requested() -> set:
    return set(CancelRequest.objects.values_list("job_id", flat=True))


def test_only_running_jobs_are_asked(storage):
    held = claimed(storage)
    dead = buried(storage)
    (waiting,) = insert(storage)
    before = row(held.id).version

    assert storage.ask_to_cancel([held.id, waiting, dead], "typo") == [held.id]

    assert requested() == {held.id}
    assert row(held.id).version == before


def test_the_last_request_counts(storage):
    held = claimed(storage)
    storage.ask_to_cancel([held.id], "typo")
    storage.ask_to_cancel([held.id], "x" * 100)
    assert storage.running_of([held.worker])[0].cancel_reason == "x" * 64


def test_whoever_reads_what_runs_reads_the_request(storage):
    held, other = claimed(storage), claimed(storage)
    storage.ask_to_cancel([held.id], "typo")
    late = timezone.now() + timedelta(hours=1)
    for found in (
        storage.running_of([held.worker, other.worker]),
        storage.overdue(1.0, now=late),
    ):
        assert {job.id: job.cancel_reason for job in found} == {held.id: "typo", other.id: None}


def test_a_job_that_came_back_is_found_while_it_waits(storage):
    held = claimed(storage)
    storage.ask_to_cancel([held.id], "typo")
    assert storage.asked(10) == []
    storage.end_many([ending(held, "retrying", outcome="failed", charged=True, delay=60.0)])
    ((job, reason),) = storage.asked(10)
    assert (job.id, job.task, reason) == (held.id, held.task, "typo")
    storage.cancel_waiting([held.id], reason)
    assert storage.asked(10) == []


def test_a_withdrawn_request_is_gone(storage):
    held, other = claimed(storage), claimed(storage)
    storage.ask_to_cancel([held.id, other.id], "typo")
    storage.withdraw_requests([held.id])
    assert requested() == {other.id}


def test_old_requests_are_forgotten_once_their_job_has_ended(storage):
    ended, running, waiting, gone = (claimed(storage) for _ in range(4))
    storage.ask_to_cancel([each.id for each in (ended, running, waiting, gone)], "typo")
    storage.finish_many(ended.worker, [Success(ended.id, ended.fence, "1", 0.0, 0.0)])
    storage.end_many([ending(waiting, "retrying", outcome="failed", charged=True, delay=60.0)])
    row(gone.id).delete()
    assert storage.forget_requests(60.0) == 0
    assert storage.forget_requests(60.0, now=timezone.now() + timedelta(minutes=2)) == 2
    assert requested() == {running.id, waiting.id}
