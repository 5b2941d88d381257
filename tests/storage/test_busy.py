"""SQLite under several writers: waiting is ours, and never inside somebody else's transaction."""

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.storage import Storage, busy, storage_for
from jobqueue.storage.busy import is_busy, is_foreign, persistently, reads, writes
from jobqueue.storage.connections import transaction_on
from tests.storage.making import claim, claimed, insert, new_job, prune, register, row, run_sql
from tests.storage.test_finish import success

pytestmark = pytest.mark.sqlite_only("PostgreSQL has row locks and waits for them itself")


def locked_error(code: int = 5) -> OperationalError:
    cause = sqlite3.OperationalError("database is locked")
    cause.sqlite_errorcode = code
    error = OperationalError("database is locked")
    error.__cause__ = cause
    return error


class Recorder(Storage):
    """A storage with one method that is busy the first few times."""

    def __init__(self, connection: BaseDatabaseWrapper, failures: int) -> None:
        super().__init__(connection)
        self.failures = failures
        self.calls: list[bool] = []

    def _work(self) -> str:
        self.calls.append(is_foreign(self.connection))
        if len(self.calls) <= self.failures:
            raise locked_error()
        return "done"

    write = writes(_work)
    read = reads(_work)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "FIRST_PAUSE_SECONDS", 0.0001)
    monkeypatch.setattr(busy, "LONGEST_PAUSE_SECONDS", 0.001)


def test_a_busy_write_is_run_again_as_a_whole_in_a_transaction(storage: Storage) -> None:
    recorder = Recorder(storage.connection, failures=3)
    assert recorder.write() == "done"
    assert recorder.calls == [True] * 4
    assert not is_foreign(storage.connection)


def test_a_busy_read_is_run_again_without_a_transaction(storage: Storage) -> None:
    recorder = Recorder(storage.connection, failures=3)
    assert recorder.read() == "done"
    assert recorder.calls == [False] * 4


@pytest.mark.parametrize("method", [Recorder.write, Recorder.read])
def test_nothing_is_repeated_in_a_callers_transaction(
    method: Callable[[Recorder], str],
) -> None:
    recorder = Recorder(connection, failures=1)
    with transaction.atomic():
        with pytest.raises(OperationalError):
            method(recorder)
    assert recorder.calls == [True]


@pytest.mark.parametrize("method", [Recorder.write, Recorder.read])
def test_nothing_is_repeated_in_a_transaction_opened_by_hand(
    storage: Storage, method: Callable[[Recorder], str]
) -> None:
    recorder = Recorder(storage.connection, failures=1)
    with transaction_on(storage.connection):
        with pytest.raises(OperationalError):
            method(recorder)
    assert recorder.calls == [True]


def test_patience_ends() -> None:
    def always_busy() -> None:
        raise locked_error()

    with pytest.raises(OperationalError, match="locked"):
        persistently(always_busy, seconds=0.05)


def test_other_errors_are_not_repeated() -> None:
    calls = []

    def broken() -> None:
        calls.append(1)
        raise locked_error(code=11)  # the file is damaged

    with pytest.raises(OperationalError):
        persistently(broken)
    assert calls == [1]


@pytest.mark.parametrize(
    ("code", "expected"), [(5, True), (6, True), (261, True), (517, True), (1, False), (10, False)]
)
def test_busy_is_what_another_connections_lock_causes(code: int, expected: bool) -> None:
    assert is_busy(locked_error(code)) is expected


def test_an_error_of_our_own_is_not_busy() -> None:
    assert is_busy(OperationalError("database is locked")) is False


@pytest.mark.parametrize("mode", [None, "DEFERRED", "EXCLUSIVE"])
def test_our_transactions_take_the_write_lock_first_whatever_the_project_sets(
    storage: Storage, other: Storage, mode: str | None
) -> None:
    storage.connection.settings_dict["OPTIONS"]["transaction_mode"] = mode
    run_sql(other.connection, "PRAGMA busy_timeout = 1")
    refused = []

    class Looking(Recorder):
        @writes
        def look(self) -> None:
            try:
                run_sql(other.connection, "BEGIN IMMEDIATE")
            except OperationalError as error:
                refused.append(is_busy(error))

    Looking(storage.connection, 0).look()
    assert refused == [True]
    assert storage.connection.transaction_mode == mode


def test_an_idle_claim_or_sweep_does_not_ask_for_the_write_lock(
    storage: Storage, other: Storage
) -> None:
    worker = register(storage)
    insert(storage, delay=3_600.0)
    run_sql(storage.connection, "PRAGMA busy_timeout = 1")
    run_sql(other.connection, "BEGIN IMMEDIATE")
    assert claim(storage, worker) == []
    assert storage.claim_alone(worker, ["default"], ["app.task"]) == []
    assert storage.promote(10) == []
    assert storage.park_unknown([], 10) == []
    assert storage.admit_known(["app.task"], 10) == []
    assert prune(storage, "succeeded", 60.0, 10) == 0
    run_sql(other.connection, "ROLLBACK")


def test_a_claim_waits_for_a_writer_and_then_takes_the_job(
    storage: Storage, other: Storage
) -> None:
    worker = register(storage)
    (job_id,) = insert(storage)
    run_sql(storage.connection, "PRAGMA busy_timeout = 0")
    run_sql(other.connection, "BEGIN IMMEDIATE")
    found = []
    waiting = threading.Thread(target=lambda: found.extend(claim(storage, worker)))
    waiting.start()
    run_sql(other.connection, "ROLLBACK")
    waiting.join()
    assert [c.id for c in found] == [job_id]


def test_a_worker_that_has_found_more_tasks_waits_for_a_writer(
    storage: Storage, other: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock:
        """The writer ends when somebody pauses for it."""

        monotonic = staticmethod(time.monotonic)

        def sleep(self, seconds: float) -> None:
            run_sql(other.connection, "ROLLBACK")

    worker = register(storage)
    run_sql(storage.connection, "PRAGMA busy_timeout = 0")
    run_sql(other.connection, "BEGIN IMMEDIATE")
    monkeypatch.setattr(busy, "time", Clock())
    storage.update_worker_tasks(worker, ["app.other"])
    assert storage.known_tasks() == {"app.other"}


def test_what_does_not_match_rolls_the_whole_method_back(storage: Storage) -> None:
    held = claimed(storage)
    storage.finish_many(held.worker, [success(held)])
    assert storage.finish_many(held.worker, [success(held)]) == [(held.id, held.fence)]
    assert row(held.id).attempts == 1


# --- many writers at once -------------------------------------------------------------------------


@pytest.fixture(params=["WAL", "DELETE"])
def open_copy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Storage]]:
    """Opens connections to a fresh database in the given journal mode."""
    path = tmp_path / "copy.sqlite3"
    given = connections[DEFAULT_DB_ALIAS]
    given.ensure_connection()
    with sqlite3.connect(path) as target:
        given.connection.backup(target)
    # Here, once: leaving WAL needs the file alone, and several who try stand in each other's way.
    target.execute(f"PRAGMA journal_mode={request.param}")
    target.close()
    opened = []

    def open_one() -> Storage:
        wrapper = given.copy()
        wrapper.settings_dict = {
            **given.settings_dict,
            "NAME": str(path),
            "OPTIONS": {
                "timeout": 0.1,  # so that our own patience is at work
                "init_command": f"PRAGMA journal_mode={request.param}; PRAGMA synchronous=OFF",
            },
        }
        wrapper.inc_thread_sharing()
        opened.append(wrapper)
        return storage_for(wrapper)

    yield open_one
    for wrapper in opened:
        wrapper.close()


def test_every_job_starts_once_among_many_writers(open_copy: Callable[[], Storage]) -> None:
    """Workers and callers on connections of their own; nobody fails on "database is locked"."""
    jobs, callers, workers = 40, 2, 3
    started: Counter[object] = Counter()
    errors: list[BaseException] = []

    def call(storage: Storage) -> None:
        for _ in range(jobs // callers):
            storage.insert_jobs([new_job()])

    def work(storage: Storage) -> None:
        worker = register(storage)
        while sum(started.values()) < jobs and not errors:
            claims = claim(storage, worker, 3)
            started.update(c.id for c in claims)
            assert storage.finish_many(worker, [success(c) for c in claims]) == []
            time.sleep(0.001)  # a poll: readers that never pause keep a rollback journal locked

    def guarded(run: Callable[[Storage], None], storage: Storage) -> None:
        try:
            run(storage)
        except BaseException as error:
            errors.append(error)

    roles = [call] * callers + [work] * workers
    threads = [threading.Thread(target=guarded, args=(role, open_copy())) for role in roles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(started.values()) == {1}
    assert len(started) == jobs
