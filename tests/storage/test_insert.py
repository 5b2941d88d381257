"""Enqueue: what a row is, when it is due, and whose transaction it lives in."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import transaction

from jobqueue.ids import new_job_id
from jobqueue.models import Job, JobTag
from jobqueue.storage import Storage, storage_for
from tests.storage.making import AGING_SECONDS, insert, new_job, row, run_sql

NOON = datetime(2030, 6, 1, 12, 0, 0, 123456, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(value: datetime) -> int:
    return (value - EPOCH) // timedelta(microseconds=1)


def test_rows_come_back_in_the_given_order(storage: Storage) -> None:
    jobs = [new_job() for _ in range(50)]
    jobs.reverse()
    assert [inserted.id for inserted in storage.insert_jobs(jobs)] == [job.id for job in jobs]


def test_nothing_to_insert_is_nothing(storage: Storage) -> None:
    assert storage.insert_jobs([]) == []


def test_a_job_without_a_time_is_ready_now(storage: Storage) -> None:
    (inserted,) = storage.insert_jobs([new_job()], NOON)
    assert inserted == (inserted.id, "ready", NOON, NOON)
    stored = row(inserted.id)
    assert (stored.state, stored.run_at, stored.enqueued_at) == ("ready", NOON, NOON)


@pytest.mark.parametrize("seconds", [0.000001, 1.5, 86_400.0])
def test_a_delay_is_counted_from_the_databases_clock(storage: Storage, seconds: float) -> None:
    (inserted,) = storage.insert_jobs([new_job(delay=seconds)], NOON)
    assert inserted.state == "scheduled"
    assert inserted.run_at == row(inserted.id).run_at == NOON + timedelta(seconds=seconds)


def test_no_delay_and_a_past_time_are_ready(storage: Storage) -> None:
    past = NOON - timedelta(days=1)
    at_once, overdue = storage.insert_jobs([new_job(delay=0.0), new_job(run_at=past)], NOON)
    assert (at_once.state, overdue.state) == ("ready", "ready")
    assert row(overdue.id).run_at == past


def test_a_time_of_another_zone_is_the_same_instant(storage: Storage) -> None:
    there = datetime(2031, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    (inserted,) = storage.insert_jobs([new_job(run_at=there)], NOON)
    assert inserted.run_at == row(inserted.id).run_at == datetime(2031, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("run_at", [EPOCH, datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)])
def test_the_first_and_the_last_time_are_kept(storage: Storage, run_at: datetime) -> None:
    (inserted,) = storage.insert_jobs([new_job(run_at=run_at)])
    assert row(inserted.id).run_at == run_at


@pytest.mark.parametrize("priority", [-100, -1, 0, 1, 100])
@pytest.mark.parametrize("aging", [0.0, 60.0, 0.1])
def test_rank_is_the_due_time_less_what_the_priority_is_worth(
    storage: Storage, priority: int, aging: float
) -> None:
    (inserted,) = storage.insert_jobs([new_job(priority=priority, aging_seconds=aging)], NOON)
    assert row(inserted.id).rank == microseconds(NOON) - round(priority * aging * 1_000_000)


def test_rank_counts_from_the_due_time_if_that_is_later(storage: Storage) -> None:
    later, earlier = NOON + timedelta(hours=1), NOON - timedelta(hours=1)
    first, second = storage.insert_jobs([new_job(run_at=later), new_job(run_at=earlier)], NOON)
    assert row(first.id).rank == microseconds(later)
    assert row(second.id).rank == microseconds(NOON)


def test_arguments_are_kept_to_the_letter(storage: Storage) -> None:
    text = '{"args":[1e22,1.10,"ü€😀"],  "kwargs":{"b":1,"a":2}}'
    (job_id,) = insert(storage, arguments=text)
    column = "arguments::text" if storage.vendor == "postgresql" else "arguments"
    key = job_id if storage.vendor == "postgresql" else job_id.hex
    sql = f"SELECT {column} FROM jobqueue_job WHERE id = %s"
    assert run_sql(storage.connection, sql, [key]) == [(text,)]


def test_every_field_of_a_new_job_is_stored(storage: Storage) -> None:
    other_id = new_job_id()
    (job_id,) = insert(
        storage,
        backend="second",
        task="shop.tasks.pay",
        queue="mail",
        priority=7,
        timeout=2.5,
        max_attempts=None,
        on_crash="bury",
        expires_at=NOON,
        copied_from=other_id,
        created_by="somebody",
        trace_context='{"traceparent":"00-1"}',
    )
    stored = row(job_id)
    assert (stored.backend, stored.task, stored.queue) == ("second", "shop.tasks.pay", "mail")
    assert (stored.priority, stored.timeout, stored.max_attempts) == (7, 2.5, None)
    assert (stored.on_crash, stored.expires_at, stored.copied_from) == ("bury", NOON, other_id)
    assert stored.created_by == "somebody"
    assert stored.trace_context == {"traceparent": "00-1"}
    assert (stored.attempts, stored.failures, stored.fence, stored.version) == (0, 0, 0, 1)


def test_tags_are_stored_once_each(storage: Storage) -> None:
    (first,) = insert(storage, tags=("order:1", "vip", "vip"))
    (second,) = insert(storage, tags=("order:1",))
    found = set(JobTag.objects.values_list("job_id", "tag"))
    assert found == {(first, "order:1"), (first, "vip"), (second, "order:1")}


def test_a_job_stands_and_falls_with_the_callers_transaction(storage: Storage) -> None:
    callers = storage_for(transaction.get_connection())
    with transaction.atomic():
        insert(callers, 3, tags=("order:1",))
        transaction.set_rollback(True)
    assert (Job.objects.count(), JobTag.objects.count()) == (0, 0)
    with transaction.atomic():
        insert(callers, 3)
    assert Job.objects.count() == 3


def test_the_clock_is_the_statements_and_not_the_transactions_start() -> None:
    callers = storage_for(transaction.get_connection())
    with transaction.atomic():
        (first,) = callers.insert_jobs([new_job()])
        while True:  # until the clock has moved, which a transaction's start never would
            (later,) = callers.insert_jobs([new_job()])
            if later.enqueued_at > first.enqueued_at:
                break
    assert row(later.id).rank > row(first.id).rank


def test_a_refused_batch_leaves_nothing(
    storage: Storage, open_storage: Callable[[], Storage]
) -> None:
    twin = new_job()
    storage.insert_jobs([twin])
    with pytest.raises(Exception, match=r"(?i)unique"):
        storage.insert_jobs([new_job(tags=("a",)), twin])
    assert (Job.objects.count(), JobTag.objects.count()) == (1, 0)
    assert insert(storage) != []


def test_aging_sets_what_a_priority_point_is_worth(storage: Storage) -> None:
    (urgent,) = insert(storage, now=NOON + timedelta(seconds=AGING_SECONDS), priority=1)
    (old,) = insert(storage, now=NOON)
    assert row(urgent).rank == row(old).rank
