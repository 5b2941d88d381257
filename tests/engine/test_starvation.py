"""A unique job that enqueues keep locked one after the other gets its turn."""

import threading
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connections, transaction
from django.utils import timezone

from jobqueue.engine.starvation import claim_in_line
from jobqueue.models import Job
from jobqueue.runtime import blocking_claim as blocking_claim_module
from jobqueue.runtime.blocking_claim import BlockingClaim
from jobqueue.storage import storage_for
from jobqueue.storage.connections import open_connection, transaction_on
from tests.engine.bench import Bench, Ran
from tests.engine.tasks import atomic_job, bodies
from tests.storage.conftest import open_storage
from tests.storage.making import run_sql
from tests.waiting import wait_until

__all__ = ["open_storage"]

QUEUES, TASKS = [atomic_job.queue_name], [atomic_job.module_path]
pytestmark = pytest.mark.postgres_only("SQLite has no row locks")


def enqueue(key="k", **using) -> UUID:
    name = uuid4().hex
    bodies[name] = lambda context: None
    return UUID(atomic_job.using(unique_key=key, **using).enqueue(name).id)


def overdue(job: UUID, **changes) -> UUID:
    """Let a job have been due for longer than enqueues may keep it away."""
    Job.objects.filter(pk=job).update(run_at=timezone.now() - timedelta(seconds=6), **changes)
    return job


@contextmanager
def kept_locked(key="k"):
    """An enqueue in another thread that meets the twin, and stays in its transaction."""
    met, leave, errors = threading.Event(), threading.Event(), []

    def keep():
        try:
            with transaction.atomic():
                assert atomic_job.using(unique_key=key).enqueue("x").already_enqueued
                met.set()
                leave.wait(30)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=keep)
    thread.start()
    assert met.wait(30)
    try:
        yield leave
    finally:
        leave.set()
        thread.join(30)
        assert errors == []


def test_only_what_has_been_due_for_a_while_and_is_locked_is_starved(bench: Bench):
    find = bench.storage.find_starved
    job = overdue(enqueue())
    overdue(enqueue("free"))
    with kept_locked():
        assert find(QUEUES, TASKS, timezone.now() - timedelta(seconds=3)) is None
        assert find(QUEUES, TASKS).id == find([], TASKS).id == job
        assert find(["other"], TASKS) is find(QUEUES, ["app.other"]) is None
    assert find(QUEUES, TASKS) is None


def test_one_process_waits_for_a_job_not_all_that_find_it(bench: Bench, open_storage):
    job = overdue(enqueue())
    first, second = open_storage(), open_storage()
    with transaction_on(first.connection):
        assert first.wait_in_line(job)
        assert run_sql(first.connection, "SHOW idle_in_transaction_session_timeout") == [("5s",)]
        assert bench.storage.find_starved(QUEUES, TASKS).id == job
        assert second.bounded(lambda: second.wait_in_line(job), 30.0) is False
    assert second.bounded(lambda: second.wait_in_line(job), 30.0) is True


def test_a_claim_in_line_has_its_turn_while_claims_pass_the_job_over(bench: Bench):
    job = overdue(enqueue())
    own = open_connection("default")
    found = []
    with kept_locked() as leave:
        assert bench.claim() == []
        starved = bench.storage.find_starved(QUEUES, TASKS)
        thread = threading.Thread(
            target=lambda: found.append(
                claim_in_line(storage_for(own), starved, bench.identity, 30.0)
            )
        )
        thread.start()
        leave.set()
        thread.join(30)
    own.close()
    ((claim,), _), *_ = found
    assert (claim.id, Ran(job).state) == (job, "running")


@pytest.mark.parametrize("queues", [QUEUES, []])
def test_a_scheduled_job_is_promoted_in_line_too(bench: Bench, queues):
    """Also by a worker that serves every queue, where nothing is ready."""
    job = overdue(enqueue(run_after=timedelta(hours=1)))
    with kept_locked():
        starved = bench.storage.find_starved(queues, TASKS)
    assert starved.id == job
    claims, promoted = claim_in_line(bench.storage, starved, bench.identity, 1.0)
    assert ([claim.id for claim in claims], promoted) == ([job], set(QUEUES))


@pytest.mark.parametrize("why", ["too long", "not wanted", "gone"])
def test_nothing_is_claimed_in_line_that_should_not_be(bench: Bench, why):
    job = overdue(enqueue())
    with kept_locked():
        starved = bench.storage.find_starved(QUEUES, TASKS)
        if why == "too long":
            assert claim_in_line(bench.storage, starved, bench.identity, 0.1) == ([], set())
    if why == "gone":
        bench.storage.cancel_waiting([job], "asked")
    if why != "too long":
        nothing = claim_in_line(bench.storage, starved, bench.identity, 1.0, lambda: False)
        assert nothing == ([], set())
    assert Ran(job).state == ("cancelled" if why == "gone" else "ready")


def test_overlapping_enqueues_do_not_keep_a_worker_away_for_ever(bench: Bench, monkeypatch):
    """Four callers, each in its transaction most of the time: the row is never free by itself."""
    monkeypatch.setattr(blocking_claim_module, "TWIN_PATIENCE_SECONDS", 0.0)
    job = overdue(enqueue())
    stop, errors, woken = threading.Event(), [], threading.Event()

    def call():
        try:
            while not stop.is_set():
                with transaction.atomic():
                    if not atomic_job.using(unique_key="k").enqueue("x").already_enqueued:
                        transaction.set_rollback(True)  # it has started: the next may be made
                        stop.set()
                    stop.wait(0.05)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    callers = [threading.Thread(target=call) for _ in range(4)]
    waiting = BlockingClaim(bench.environment, "default", woken.set, lambda: True)
    for each in callers:
        each.start()
    try:
        wait_until(lambda: waiting.look(bench.storage, QUEUES, TASKS) or woken.is_set(), "its turn")
    finally:
        stop.set()
        for each in callers:
            each.join(60)
    (claim,) = waiting.collect()
    assert (claim.id, errors) == (job, [])
    assert waiting.collect() == []


def test_a_worker_that_stops_waits_for_nothing_more(bench: Bench, monkeypatch):
    monkeypatch.setattr(blocking_claim_module, "TWIN_PATIENCE_SECONDS", 0.0)
    overdue(enqueue())
    waiting = BlockingClaim(bench.environment, "default", lambda: None, lambda: True)
    waiting.stop()
    with kept_locked():
        waiting.look(bench.storage, QUEUES, TASKS)
        assert waiting._thread is None
