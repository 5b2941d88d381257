"""Idempotency keys: claimed once, answered alike, waited for briefly, pruned in the end."""

import threading
from datetime import timedelta

import pytest
from django.db import IntegrityError, OperationalError
from django.utils import timezone

from jobqueue.models import IdempotencyKey
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.errors import LOCK_NOT_AVAILABLE, sqlstate
from jobqueue.storage.records import RequestKey, StoredAnswer
from tests.storage.making import run_sql
from tests.waiting import wait_until

REQUEST = RequestKey("user:1", "jobs", "k", "a" * 64)
ANSWER = StoredAnswer(201, {"Location": "/jobs/é/"}, b'{"id": 1, "\xc3\xa9": "\\u00e9\\u0000"}\n')
DAY = 86_400.0


def keep(storage, request=REQUEST, answer=ANSWER, seconds=DAY):
    number = storage.claim_request(request, seconds)
    storage.keep_answer(number, answer)
    return number


def keep_and_roll_back(storage):
    storage.connection.set_autocommit(False)
    keep(storage)
    storage.connection.rollback()
    storage.connection.set_autocommit(True)


def claim(storage):
    """Claim as a request does: in a transaction of its own, with its bounds."""
    with transaction_on(storage.connection):
        storage.begin_request()
        return storage.claim_request(REQUEST, DAY)


def test_an_answer_comes_back_byte_for_byte(storage):
    keep(storage)
    assert storage.find_request(REQUEST) == (REQUEST.fingerprint, ANSWER)


def test_a_key_is_claimed_once_whatever_the_body(storage):
    keep(storage)
    assert storage.claim_request(REQUEST, DAY) is None
    assert storage.claim_request(REQUEST._replace(fingerprint="b" * 64), DAY) is None


@pytest.mark.parametrize("field", ["caller", "route", "key"])
def test_a_key_belongs_to_its_caller_and_route(storage, field):
    keep(storage)
    assert storage.claim_request(REQUEST._replace(**{field: "other"}), DAY) is not None
    assert storage.find_request(REQUEST._replace(**{field: "third"})) is None


def test_keys_are_told_apart_by_each_letter(storage):
    for key in ("k" * 255, "K" * 255, "k" * 254, "k" * 254 + " "):
        keep(storage, REQUEST._replace(key=key))


def test_what_is_rolled_back_leaves_the_key_free(storage):
    keep_and_roll_back(storage)
    assert keep(storage)


def test_a_row_has_a_whole_answer_or_none(storage):
    number = storage.claim_request(REQUEST, DAY)
    sql = "UPDATE jobqueue_idempotencykey SET status = 201 WHERE id = %s"
    with pytest.raises(IntegrityError):
        run_sql(storage.connection, sql, [number])


@pytest.mark.postgres_only("SQLite has one writer: the others wait for the database")
def test_a_claim_waits_for_the_first_one_and_not_for_long(storage, other):
    with transaction_on(storage.connection):
        storage.claim_request(REQUEST, DAY)
        with pytest.raises(OperationalError) as raised:
            claim(other)
    assert sqlstate(raised.value) == LOCK_NOT_AVAILABLE


@pytest.mark.postgres_only("SQLite has one writer: the others wait for the database")
@pytest.mark.parametrize("commits", [True, False])
def test_a_claim_sees_what_became_of_the_first_one(storage, other, commits):
    claimed = []
    thread = threading.Thread(target=lambda: claimed.append(claim(other)))
    first = storage.connection
    first.set_autocommit(False)
    keep(storage)
    thread.start()
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
    wait_until(lambda: run_sql(first, waiting), "the second claim")
    first.commit() if commits else first.rollback()
    first.set_autocommit(True)
    thread.join()
    assert (claimed == [None]) is commits


@pytest.mark.postgres_only("SQLite has no isolation levels to choose, and no idle sessions")
def test_a_request_is_read_committed_and_bounded_whatever_the_session_says(storage):
    level = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE"
    run_sql(storage.connection, level)
    with transaction_on(storage.connection):
        storage.begin_request()
        names = "transaction_isolation", "lock_timeout", "idle_in_transaction_session_timeout"
        found = [run_sql(storage.connection, f"SHOW {name}")[0][0] for name in names]
    assert found == ["read committed", "1s", "5s"]
    assert run_sql(storage.connection, "SHOW lock_timeout") == [("0",)]


def test_keys_are_pruned_when_their_time_is_over_a_batch_at_a_time(storage):
    for n in range(5):
        keep(storage, REQUEST._replace(key=str(n)), seconds=DAY if n < 4 else 10 * DAY)
    assert storage.prune_requests(10) == 0
    later = timezone.now() + timedelta(days=1, minutes=1)
    assert storage.prune_requests(3, now=later) == 3
    assert storage.prune_requests(3, now=later) == 1
    assert IdempotencyKey.objects.get().key == "4"


@pytest.mark.postgres_only("SQLite has no locks of rows")
def test_pruning_passes_over_what_is_locked(storage, other):
    keep(storage, seconds=-1.0)
    with transaction_on(storage.connection):
        run_sql(storage.connection, "SELECT * FROM jobqueue_idempotencykey FOR UPDATE")
        assert other.prune_requests(10) == 0
    assert other.prune_requests(10) == 1
