"""A batch that is finished past the cursor: the same rows, whatever the results, and no waiting."""

import json
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction

from jobqueue.ids import new_job_id
from jobqueue.storage import Storage, postgres, storage_for
from jobqueue.storage.errors import is_away
from jobqueue.storage.postgres_wire import BIGINTS, FLOATS, TEXTS, UUIDS, Value, array, ask
from jobqueue.storage.records import Success
from tests.storage.making import claim, claimed, insert, register, row, run_sql

pytestmark = pytest.mark.postgres_only("SQLite has no cursor to go past")

RESULTS = [
    "null", '""', '"é 🎉 \\u2028"', '"\\\\ \\" { } , NULL"', "[[], {}]", '{"a": "\'$1 %s"}',
    json.dumps("x" * 300_000), "-0.5", '"\\u0000"',
]  # fmt: skip


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many jobs were finished past the cursor, batch by batch; -1: it gave up."""
    sizes = []
    real = postgres.finish_quickly

    def finish(*args):
        unmatched = real(*args)
        sizes.append(-1 if unmatched is None else len(args[-1]))
        return unmatched

    monkeypatch.setattr(postgres, "finish_quickly", finish)
    return sizes


@pytest.mark.parametrize("is_open", [False, True], ids=["by itself", "in a transaction"])
def test_results_are_stored_to_the_letter(storage: Storage, quick: list[int], is_open: bool):
    worker = register(storage)
    insert(storage, len(RESULTS))
    claims = claim(storage, worker, len(RESULTS))
    successes = [
        Success(c.id, c.fence, result, 2.5, 1.25) for c, result in zip(claims, RESULTS, strict=True)
    ]
    if is_open:
        with transaction.atomic():
            assert storage_for(connection).finish_many(worker, successes) == []
    else:
        assert storage.finish_many(worker, successes) == []
    assert quick == ([] if is_open else [len(RESULTS)])
    found = run_sql(connection, "SELECT array_agg(id), array_agg(result::text) FROM jobqueue_job")
    assert dict(zip(*found[0], strict=True)) == {s.id: s.result for s in successes}
    for one in claims:
        (seconds,) = run_sql(
            connection,
            "SELECT extract(epoch FROM finished_at - started_at) FROM jobqueue_attempt"
            " WHERE job_id = %s",
            [one.id],
        )[0]
        assert float(seconds) == 1.25


def test_what_is_rolled_back_was_never_finished(storage: Storage, quick: list[int]):
    held = claimed(storage, register(storage))
    with transaction.atomic():
        storage_for(connection).finish_many(held.worker, [Success(held.id, 1, "null", 1.0, 0.0)])
        transaction.set_rollback(True)
    assert row(held.id).state == "running"
    assert quick == []


def test_a_row_that_somebody_holds_is_passed_over_after_a_moment(
    storage: Storage, other: Storage, quick: list[int]
):
    worker = register(storage)
    held, free = claimed(storage, worker), claimed(storage, worker)
    successes = [Success(c.id, c.fence, "null", 1.0, 0.0) for c in (held, free)]
    run_sql(other.connection, "BEGIN")
    run_sql(other.connection, "SELECT FROM jobqueue_job WHERE id = %s FOR UPDATE", [held.id])
    assert storage.finish_many(worker, successes) == [(held.id, held.fence)]
    run_sql(other.connection, "ROLLBACK")
    assert quick == [-1]
    assert (row(held.id).state, row(free.id).state) == ("running", "succeeded")
    assert storage.finish_many(worker, successes[:1]) == []
    assert quick == [-1, 1]


def test_the_session_waits_for_others_as_long_as_before(storage: Storage):
    held = claimed(storage, register(storage))
    before = run_sql(storage.connection, "SHOW lock_timeout")
    storage.finish_many(held.worker, [Success(held.id, held.fence, "null", 1.0, 0.0)])
    assert run_sql(storage.connection, "SHOW lock_timeout") == before


def test_text_is_right_in_a_session_of_another_encoding(storage: Storage, quick: list[int]):
    held = claimed(storage, register(storage))
    run_sql(storage.connection, "SET client_encoding = 'LATIN1'")
    assert storage.finish_many(held.worker, [Success(held.id, held.fence, '"é"', 1.0, 0.0)]) == []
    assert row(held.id).result == "é"
    assert quick == []


def test_of_two_runs_of_a_job_the_stale_one_is_reported(storage: Storage):
    stale = claimed(storage, register(storage))
    run_sql(connection, "UPDATE jobqueue_job SET fence = fence + 1")
    both = [Success(stale.id, stale.fence + more, str(more), 1.0, 0.0) for more in (0, 1)]
    assert storage.finish_many(stale.worker, both) == [(stale.id, stale.fence)]
    assert row(stale.id).result == 1


def test_a_session_that_is_gone_is_a_database_that_is_away(storage: Storage, other: Storage):
    held = claimed(storage, register(storage))
    ((pid,),) = run_sql(storage.connection, "SELECT pg_backend_pid()")
    run_sql(other.connection, "SELECT pg_terminate_backend(%s, 5000)", [pid])
    with pytest.raises(DatabaseError) as caught:
        storage.finish_many(held.worker, [Success(held.id, held.fence, "null", 1.0, 0.0)])
    assert is_away(caught.value)
    assert row(held.id).state == "running"


@pytest.mark.parametrize("size", [0, 1, 3])
def test_arrays_arrive_as_they_were_sent(storage: Storage, size: int):
    ids = [new_job_id() for _ in range(size)]
    texts = ["", 'é,{}"\\', "NULL"][:size]
    storage.connection.ensure_connection()
    rows = ask(
        storage.connection.connection,
        "SELECT coalesce(array_to_json(%(ids)s)::text, ''), array_to_json(%(texts)s)::text,"
        " array_to_json(%(numbers)s)::text, array_to_json(%(floats)s)::text, %(word)s || %(word)s",
        {
            "ids": array(UUIDS, [each.bytes for each in ids]),
            "texts": array(TEXTS, [text.encode() for text in texts]),
            "numbers": array(BIGINTS, [(-n).to_bytes(8, signed=True) for n in range(size)]),
            "floats": array(FLOATS, [b"\x3f\xf8" + bytes(6)] * size),
            "word": Value(25, b"ab"),
        },
    )
    found = [json.loads(text) for text in rows[0][:4]]
    assert [UUID(each) for each in found[0]] == ids
    assert found[1:] == [texts, [-n for n in range(size)], [1.5] * size]
    assert rows[0][4] == "abab"
