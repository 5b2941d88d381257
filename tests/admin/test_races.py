"""Actions against rows that workers hold, have just claimed, or have just finished."""

import threading
from collections.abc import Iterator

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection, connections
from django.test import Client

from jobqueue.models import Action, Attempt, CancelRequest, Job
from jobqueue.storage.records import Success
from tests.admin.making import page
from tests.storage.conftest import _django_db_helper, open_storage, other, storage
from tests.storage.making import claim, claimed, insert, register, row, states

__all__ = ["_django_db_helper", "open_storage", "other", "storage"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def admin(_django_db_helper) -> Iterator[Client]:
    """A superuser on a connection that really commits."""
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    yield client
    for model in (LogEntry, Session, User):
        model.objects.all().delete()


def told(client: Client, verb: str, *ids, **given) -> str:
    """Do something to jobs that were ticked some time ago; return the page that says what came."""
    chosen = {"_selected_action": list(ids), "next": page("job"), **given}
    return client.post(page("job", "selected", verb), chosen, follow=True).text


def test_a_job_that_was_claimed_since_is_asked_to_stop(admin, storage):
    (job_id,) = insert(storage)
    claim(storage, register(storage))
    assert "1 asked to stop" in told(admin, "cancel", job_id)
    assert CancelRequest.objects.get().pk == job_id
    assert row(job_id).state == "running", "only its worker writes about its run"


def test_a_job_that_has_finished_since_is_left_as_it_is(admin, storage):
    held = claimed(storage)
    storage.finish_many(held.worker, [Success(held.id, held.fence, "null", 1.0, 0.0)])
    before = row(held.id).version
    for verb in ("cancel", "discard", "run_now", "requeue"):
        assert "1 skipped: succeeded" in told(admin, verb, held.id)
    assert row(held.id).version == before
    assert not Action.objects.exists()
    assert not LogEntry.objects.exists()


def test_by_force_a_run_is_ended_and_its_worker_refused(admin, storage):
    held = claimed(storage)
    assert "1 cancelled" in told(admin, "cancel", held.id, force="on")
    assert row(held.id).state == "cancelled"
    late = storage.finish_many(held.worker, [Success(held.id, held.fence, "null", 1.0, 0.0)])
    assert late == [(held.id, held.fence)], "its worker is told that the job is no longer its own"
    assert Attempt.objects.get().outcome == "cancelled"


@pytest.mark.postgres_only("SQLite has one writer: it waits instead")
def test_a_row_that_a_worker_is_writing_is_told_to_be_locked(admin, storage, other):
    held = claimed(storage)
    with other.connection.cursor() as cursor:
        cursor.execute("BEGIN")
        other.hold(held, 5.0)
        assert "1 locked by a transaction" in told(admin, "cancel", held.id, force="on")
        cursor.execute("ROLLBACK")
    assert row(held.id).state == "running"
    assert not Action.objects.exists()


def test_while_workers_are_busy_each_job_is_changed_once_or_not_at_all(admin, open_storage):
    """Every job ends as its worker said or as the operator said, and all are told of."""
    storage = open_storage()
    ids = insert(storage, 60)
    stop = threading.Event()
    errors: list[Exception] = []

    def work(of) -> None:
        worker = register(of)
        try:
            while not stop.is_set():
                held = claim(of, worker, 5)
                of.finish_many(worker, [Success(h.id, h.fence, "null", 1.0, 0.0) for h in held])
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(open_storage(),)) for _ in range(2)]
    for each in workers:
        each.start()
    try:
        for start in range(0, 60, 20):
            told(admin, "cancel", *ids[start : start + 20], force="on")
    finally:
        stop.set()
        for each in workers:
            each.join(60)
    assert errors == []
    cancelled = sum(Action.objects.values_list("count", flat=True))
    found = states(*ids)
    assert set(found) <= {"cancelled", "succeeded", "ready", "running"}
    assert found.count("cancelled") == cancelled
    assert LogEntry.objects.count() == cancelled
    ended = Attempt.objects.values_list("job_id", "outcome")
    assert len({job_id for job_id, _outcome in ended}) == len(ended), "no job has ended twice"
    assert Job.objects.count() == 60
    connections.close_all()
    connection.ensure_connection()
