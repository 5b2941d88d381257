"""Sessions: what PostgreSQL knows of them, and what SQLite says instead."""

import pytest
from django.db import OperationalError

from jobqueue.ids import lock_key, new_identity
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import is_direct, open_connection
from tests.storage.making import run_sql
from tests.waiting import wait_until

ON_POSTGRES = pytest.mark.postgres_only("SQLite has no sessions")
ON_SQLITE = pytest.mark.sqlite_only("PostgreSQL has sessions")


@ON_POSTGRES
def test_a_session_without_a_pooler_is_direct(storage: Storage) -> None:
    assert storage.is_direct() is True
    assert is_direct("default") is True


@ON_POSTGRES
def test_the_sessions_of_a_worker_are_ended_by_its_name(storage: Storage) -> None:
    worker = new_identity()
    doomed, spared = open_connection("default", identity=worker), open_connection("default")
    try:
        run_sql(doomed, "SELECT 1")
        run_sql(spared, "SELECT 1")
        assert storage.end_sessions([new_identity()]) == 0
        assert storage.end_sessions([worker]) == 1
        wait_until(lambda: storage.end_sessions([worker]) == 0, "the end of a session")
        with pytest.raises(OperationalError):
            run_sql(doomed, "SELECT 1")
        assert run_sql(spared, "SELECT 1") == [(1,)]
    finally:
        doomed.close()
        spared.close()


@ON_POSTGRES
def test_one_session_is_ended_only_if_it_is_the_workers_own(storage: Storage) -> None:
    worker = new_identity()
    doomed = open_connection("default", identity=worker)
    try:
        ((pid,),) = run_sql(doomed, "SELECT pg_backend_pid()")
        assert storage.end_session(pid, new_identity()) is True  # nothing there by that name
        assert run_sql(doomed, "SELECT 1") == [(1,)]
        assert storage.end_session(pid, worker) is False  # told to, perhaps not gone yet
        wait_until(lambda: storage.end_session(pid, worker), "the end of a session")
        with pytest.raises(OperationalError):
            run_sql(doomed, "SELECT 1")
    finally:
        doomed.close()


@ON_POSTGRES
def test_a_life_lock_ends_with_its_session(storage: Storage) -> None:
    worker = new_identity()
    beat = open_connection("default", identity=worker)
    storage_for(beat).hold_life_lock(worker)
    assert lock_key(worker) in storage.life_locks()
    beat.close()
    wait_until(lambda: lock_key(worker) not in storage.life_locks(), "the end of a session")


@ON_POSTGRES
@pytest.mark.parametrize("key", [-(2**63), -1, 0, 1, 2**63 - 1])
def test_life_locks_come_back_under_their_own_key(storage: Storage, key: int) -> None:
    run_sql(storage.connection, "SELECT pg_advisory_lock((%s)::bigint)", [key])
    assert storage.life_locks() == {key}


@ON_POSTGRES
def test_the_server_says_when_it_started(storage: Storage) -> None:
    started = storage.server_started_at()
    assert started is not None
    assert started.tzinfo is not None


@ON_POSTGRES
def test_the_settings_that_durability_depends_on_are_told(storage: Storage) -> None:
    found = storage.database_settings()
    assert found["synchronous_commit"] == "on"
    assert found["default_transaction_isolation"] == "read committed"
    assert found["server_version"]


@ON_POSTGRES
def test_a_notification_reaches_who_listens(storage: Storage, other: Storage) -> None:
    run_sql(other.connection, "LISTEN jobqueue_test")
    storage.notify("jobqueue_test", "mail")
    (note,) = other.connection.connection.notifies(timeout=30, stop_after=1)
    assert (note.channel, note.payload) == ("jobqueue_test", "mail")


@ON_POSTGRES
def test_who_keeps_dead_rows_from_being_removed_is_named(storage: Storage, other: Storage) -> None:
    run_sql(other.connection, "SET application_name = 'a long report'")
    run_sql(other.connection, "BEGIN ISOLATION LEVEL REPEATABLE READ")
    run_sql(other.connection, "SELECT count(*) FROM jobqueue_job")
    expected = ("session", "a long report", "idle in transaction")
    # A vacuum may be the older one for a moment.
    wait_until(lambda: holder_of(storage) == expected, "the name of a session")
    run_sql(other.connection, "ROLLBACK")


def holder_of(storage: Storage) -> tuple[str, str, str] | None:
    found = storage.horizon_holder()
    return found and (found.kind, found.name, found.state)


@ON_SQLITE
def test_there_is_no_session_to_speak_of(storage: Storage) -> None:
    assert storage.is_direct() is False
    assert storage.end_sessions([new_identity()]) == 0
    assert storage.end_session(1, new_identity()) is True
    assert storage.server_started_at() is None
    assert storage.horizon_holder() is None
    with pytest.raises(NotImplementedError, match="HINTS"):
        storage.notify("jobqueue", "mail")


@ON_SQLITE
def test_the_settings_that_matter_are_told(storage: Storage) -> None:
    found = storage.database_settings()
    assert found["journal_mode"] == "wal"
    assert found["synchronous"] == "0"
    assert found["busy_timeout"] == "20000"
    assert found["transaction_mode"] == "IMMEDIATE"
    assert found["version"]
