"""What status asks of storage: bounded, by index, and right."""

from datetime import timedelta

import pytest
from django.db import connection

from jobqueue.ids import new_identity, session_name
from jobqueue.models import Job, Worker
from jobqueue.storage import Storage
from jobqueue.storage.connections import open_connection, transaction_on
from jobqueue.storage.postgres import PostgresStorage
from tests.storage.making import analyze, buried, claimed, insert, register, row, run_sql
from tests.storage.test_operators import in_every_state

LIVE = ("ready", "running", "blocked", "dead", "retrying", "scheduled")


def test_jobs_are_counted_by_live_state_and_dead(storage: Storage) -> None:
    assert storage.state_counts(100) == {}
    in_every_state(storage)
    assert storage.state_counts(100) == dict.fromkeys(LIVE, 1)


def test_nothing_is_counted_beyond_the_limit(storage: Storage) -> None:
    insert(storage, 5)
    insert(storage, 5, delay=60.0)
    assert storage.state_counts(3) == {"ready": 3, "scheduled": 3}
    (backlog,) = storage.queue_backlogs(3, 10)
    assert backlog.ready == 3


def test_backlogs_are_of_each_queue_with_its_oldest(storage: Storage) -> None:
    (first,) = insert(storage, queue="mail")
    insert(storage, 2, queue="mail")
    insert(storage, queue="default")
    insert(storage, queue="later", delay=60.0)
    now = row(first).run_at + timedelta(seconds=90)
    found = {b.queue: b for b in storage.queue_backlogs(100, 10, now)}
    assert {name: b.ready for name, b in found.items()} == {"mail": 3, "default": 1}
    assert found["mail"].oldest_seconds == pytest.approx(90.0)
    assert [b.queue for b in storage.queue_backlogs(100, 1)] == ["default"]


def test_blocked_jobs_are_counted_by_reason_and_by_task(storage: Storage) -> None:
    insert(storage, 4)
    storage.park_unknown(["other.task"], 10)
    (limited,) = insert(storage)
    Job.objects.filter(id=limited).update(state="blocked", reason="limit")
    assert storage.blocked_counts(3) == {"limit": 1, "unknown task": 3}
    assert storage.parked_counts(["app.task", "other"], 3) == {"app.task": 3, "other": 0}
    assert storage.parked_counts(["app.task"], 100) == {"app.task": 4}


def test_an_empty_database_has_no_backlog(storage: Storage) -> None:
    assert storage.queue_backlogs(100, 10) == []
    assert storage.blocked_counts(100) == {}
    assert set(storage.backlog_ages().values()) == {None}


def test_ages_are_of_the_oldest(storage: Storage) -> None:
    (later,) = insert(storage, delay=30.0)
    insert(storage, delay=60.0)
    now = row(later).run_at + timedelta(seconds=90)
    found = storage.backlog_ages(now=now)
    assert found == {"oldest_unpromoted": pytest.approx(90.0), "oldest_unreaped": None}


def test_jobs_of_a_dead_worker_are_unreaped(storage: Storage) -> None:
    held = claimed(storage)
    claimed(storage)
    assert storage.backlog_ages()["oldest_unreaped"] is None
    storage.mark_dead(held.worker, "test")
    age = storage.backlog_ages()["oldest_unreaped"]
    assert age is not None
    assert age >= 0.0


# --- what only a server has ----------------------------------------


@pytest.mark.sqlite_only("what these ask about is PostgreSQL's")
def test_sqlite_has_nothing_in_its_way(storage: Storage) -> None:
    assert storage.horizon_holder() is None
    assert storage.table_state() is None
    assert storage.estimated_count("ready") is None
    assert (storage.idle_slots(), storage.open_transactions(0.0)) == ([], [])


@pytest.mark.postgres_only("SQLite has no planner that knows how many rows there are")
def test_big_numbers_are_estimated_without_reading(storage: Storage) -> None:
    insert(storage, 2_000)
    analyze("jobqueue_job")
    assert storage.estimated_count("ready") == pytest.approx(2_000, rel=0.1)


@pytest.mark.postgres_only("SQLite keeps no dead rows")
def test_dead_rows_are_estimated(storage: Storage) -> None:
    buried(storage)
    run_sql(connection, "SELECT pg_stat_force_next_flush()")
    run_sql(connection, "VACUUM jobqueue_job")
    state = storage.table_state()
    assert state is not None
    assert state.dead_rows >= 0
    assert 0 <= (state.vacuumed_ago or 0.0) < 60


@pytest.mark.postgres_only("SQLite has no sessions")
def test_long_transactions_of_workers_are_found(storage: Storage) -> None:
    identity = new_identity()
    session = open_connection("default", identity=identity)
    try:
        with transaction_on(session):
            run_sql(session, "SELECT count(*) FROM jobqueue_job")
            (found,) = storage.open_transactions(0.0)
            assert (found.worker, found.state) == (identity, "idle in transaction")
            assert found.seconds >= 0.0
            assert storage.open_transactions(60.0) == []
    finally:
        session.close()
    assert session_name(identity).endswith(identity.hex)


@pytest.mark.postgres_only("SQLite has no replication")
def test_a_slot_that_nobody_reads_is_found(storage: Storage) -> None:
    made = "SELECT pg_create_physical_replication_slot('forgotten', true)"
    try:
        run_sql(connection, made)
    except Exception as error:
        pytest.skip(f"the server lets nobody make a slot: {error}")
    try:
        (slot,) = storage.idle_slots()
        assert (slot.name, slot.state) == ("forgotten", "reserved")
        assert slot.kept_bytes >= 0
    finally:
        run_sql(connection, "SELECT pg_drop_replication_slot('forgotten')")


@pytest.mark.postgres_only("on SQLite all workers have the clock of the one host")
def test_a_beat_says_how_far_the_workers_clock_is_off(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = register(storage)
    assert abs(Worker.objects.get(id=worker).clock_ahead) < 30.0
    monkeypatch.setattr("jobqueue.storage.postgres.time.time", lambda: 0.0)
    storage.renew_worker(worker, 15.0, False)
    assert Worker.objects.get(id=worker).clock_ahead < -1e9
