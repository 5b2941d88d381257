"""Back to waiting with a unique key that another job holds meanwhile: one of the two lives on."""

import itertools
import threading
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connections

from jobqueue.ids import new_job_id
from jobqueue.models import Job
from jobqueue.states import LIVE, WAITING
from jobqueue.storage import moving, postgres_moving
from jobqueue.storage.records import Mover
from tests.storage.making import (
    AGING_SECONDS,
    TASK,
    attempts,
    claim,
    ending,
    insert,
    new_job,
    register,
    row,
    run_sql,
    states,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
BACK = {
    "retry": ("retrying", {"outcome": "failed", "charged": True, "delay": 5.0}),
    "snooze": ("scheduled", {"outcome": "snoozed", "delay": 60.0}),
    "release": ("ready", {}),
    "reap": ("ready", {"outcome": "lost", "suspicion": 1}),
    "reap later": ("retrying", {"outcome": "lost", "suspicion": 1, "delay": 5.0, "alone": True}),
}
each_way = pytest.mark.parametrize("way", BACK)


ages = itertools.count(new_job_id().int)
"""Ids that ascend: those of one millisecond need not."""


def unique_job(key="k", until="start", **changes):
    return new_job(id=UUID(int=next(ages)), unique_key=key, unique_until=until, **changes)


def enqueue(storage, *jobs):
    """Insert unique jobs, none of which may meet a twin; return their ids."""
    assert len(storage.insert_unique(jobs)) == len(jobs)
    return [job.id for job in jobs]


def run(storage, worker, *jobs):
    """Enqueue and claim unique jobs; return their claims, in that order."""
    ids = enqueue(storage, *jobs)
    held = {each.id: each for each in claim(storage, worker, 100)}
    return [held[job_id] for job_id in ids]


def back(held, way, **changes):
    state, values = BACK[way]
    return ending(held, state, **{**values, **changes})


def alive():
    """Return the ids of the live jobs of each key."""
    found: dict[str, set] = {}
    for job_id, key in Job.objects.filter(state__in=LIVE).values_list("id", "unique_key"):
        found.setdefault(key, set()).add(job_id)
    return found


# --- who gives way ----------------------------------------


def mover(number, holder=None, waits=True, lapsed=False, expired=False, key="k"):
    ids = [UUID(int=n + 1) for n in range(10)]
    held_by = None if holder is None else ids[holder]
    return Mover(ids[number], "default", TASK, key, 0, held_by, waits, lapsed, expired)


def test_the_newest_lives_and_a_holder_gives_way_only_if_it_waits_and_is_older():
    one, two = mover(1), mover(2)
    assert moving.judge([two, one]) == moving.Judgment(superseded={one.id})
    assert moving.judge([mover(1), mover(1, key="other")]) == moving.Judgment()
    younger, older = mover(1, holder=5), mover(7, holder=5)
    assert moving.judge([younger]).superseded == {younger.id}
    assert moving.judge([older]).give_way == {older.holder: older.id}
    assert moving.judge([mover(1, holder=5, expired=True)]).give_way == {younger.holder: younger.id}
    assert moving.judge([mover(7, holder=5, waits=False)]).superseded == {older.id}
    assert moving.judge([mover(7, holder=5, waits=False, lapsed=True)]).lapsed == [older.holder]


# --- out of running ----------------------------------------


@each_way
def test_without_a_twin_a_unique_job_goes_where_it_should(storage, way):
    (held,) = run(storage, register(storage), unique_job())
    moves = storage.end_many([back(held, way)])
    assert (moves, moves.superseded) == ([], [])
    assert states(held.id) == [BACK[way][0]]


@each_way
def test_a_job_that_has_a_newer_twin_is_superseded_with_its_attempt_on_the_books(storage, way):
    (held,) = run(storage, register(storage), unique_job())
    (twin,) = enqueue(storage, unique_job())

    moves = storage.end_many([back(held, way)])

    assert (moves, moves.superseded) == ([], [(held.id, "default", TASK)])
    ended = row(held.id)
    assert (ended.state, ended.reason, ended.unique_key) == ("cancelled", "superseded", "k")
    assert [each.outcome for each in attempts(held.id)] == [
        outcome for outcome in [BACK[way][1].get("outcome")] if outcome
    ]
    assert alive() == {"k": {twin}}


@each_way
def test_a_newer_job_takes_the_place_of_an_older_that_waits(storage, way):
    worker = register(storage)
    (older,) = run(storage, worker, unique_job())
    (newer,) = run(storage, worker, unique_job())
    storage.end_many([back(older, "retry")])

    moves = storage.end_many([back(newer, way)])

    assert (moves, moves.superseded) == ([], [(older.id, "default", TASK)])
    assert (row(older.id).state, row(older.id).reason) == ("cancelled", "superseded")
    assert states(newer.id) == [BACK[way][0]]


@each_way
def test_nobody_gives_way_to_a_newer_job_that_will_never_start(storage, way):
    worker = register(storage)
    (held,) = run(storage, worker, unique_job())
    (late,) = enqueue(storage, unique_job(expires_at=datetime(2020, 1, 1, tzinfo=UTC)))
    moves = storage.end_many([back(held, way)])
    assert (list(moves), [job.id for job in moves.superseded]) == ([], [late])
    assert alive() == {"k": {held.id}}


def test_two_of_one_key_that_come_back_together_leave_the_newer(storage):
    worker = register(storage)
    (older,), (newer,) = run(storage, worker, unique_job()), run(storage, worker, unique_job())
    moves = storage.end_many([back(newer, "reap"), back(older, "reap")])
    assert (moves, [job.id for job in moves.superseded]) == ([], [older.id])
    assert alive() == {"k": {newer.id}}


@pytest.mark.parametrize("changes", [{"until": "done"}, {"until": "done", "unique_window": 60.0}])
def test_a_job_that_held_its_key_all_the_time_needs_no_room(storage, changes):
    (held,) = run(storage, register(storage), unique_job(**changes))
    assert storage.insert_unique([unique_job()]) == []
    moves = storage.end_many([back(held, "retry")])
    assert (moves, moves.superseded, states(held.id)) == ([], [], ["retrying"])


def test_a_running_twin_stays_and_what_comes_back_is_superseded(storage):
    """Rules may differ between enqueues: the twin holds its key while it runs."""
    worker = register(storage)
    (held,) = run(storage, worker, unique_job())
    (running,) = run(storage, worker, unique_job(until="done"))
    storage.end_many([back(held, "retry")])
    assert (row(held.id).reason, states(running.id)) == ("superseded", ["running"])


def test_an_ended_twin_whose_window_is_over_makes_room(storage):
    worker = register(storage)
    (held,) = run(storage, worker, unique_job())
    (twin,) = run(storage, worker, unique_job(until="done", unique_window=60.0))
    storage.end_many([ending(twin, "dead", outcome="failed", charged=True)])
    Job.objects.filter(pk=twin.id).update(unique_window_end=NOON)
    storage.end_many([back(held, "retry")], now=NOON + timedelta(seconds=1))
    assert states(held.id, twin.id) == ["retrying", "dead"]
    assert row(twin.id).unique_window_end is None


def test_nobody_gives_way_to_a_zombie(storage):
    worker = register(storage)
    (zombie,) = run(storage, worker, unique_job())
    storage.end_many([back(zombie, "release")])
    (again,) = claim(storage, register(storage))
    (older,) = [again]
    (newer,) = run(storage, worker, unique_job())
    storage.end_many([back(older, "retry")])
    stale = newer._replace(fence=newer.fence + 1)

    moves = storage.end_many([back(stale, "reap"), back(zombie, "reap")])

    assert sorted(moves) == sorted([(stale.id, stale.fence), (zombie.id, zombie.fence)])
    assert moves.superseded == []
    assert states(older.id, newer.id) == ["retrying", "running"]


def test_a_batch_of_all_kinds_is_written_whole(storage):
    """A worker dies with unique jobs, some with twins, between others: not one of them is left."""
    worker = register(storage)
    plain = insert(storage, 3)
    unique = enqueue(storage, *(unique_job(f"k{n}") for n in range(6)))
    held = claim(storage, worker, 20)
    twins = enqueue(storage, *(unique_job(f"k{n}") for n in range(3)))

    moves = storage.end_many([back(each, "reap") for each in held])

    assert moves == []
    assert {job.id for job in moves.superseded} == set(unique[:3])
    assert set(states(*plain, *unique[3:], *twins)) == {"ready"}
    assert all(len(ids) == 1 for key, ids in alive().items() if key)
    assert not Job.objects.filter(state="running").exists()


def test_a_superseded_job_leaves_its_suspicions_to_its_twin(storage):
    """Else work that kills workers would never end as poison while somebody asks for it."""
    worker = register(storage)
    (first,) = run(storage, worker, unique_job())
    (twin,) = enqueue(storage, unique_job())
    storage.end_many([back(first, "reap")])
    assert (row(twin).suspicions, row(twin).alone) == (1, False)
    (second,) = claim(storage, worker)
    (last,) = enqueue(storage, unique_job())
    storage.end_many([back(second, "reap later")])
    assert (row(last).suspicions, row(last).alone) == (2, True)


@pytest.mark.parametrize("before", [0, 1])
def test_a_failure_adds_no_suspicion_and_takes_none_away(storage, before):
    worker = register(storage)
    (held,) = run(storage, worker, unique_job())
    Job.objects.update(suspicions=before)
    (twin,) = enqueue(storage, unique_job())
    storage.end_many([back(held, "retry")])
    assert row(twin).suspicions == before


# --- races ----------------------------------------

only_on_postgres = pytest.mark.postgres_only("SQLite has one writer: nothing happens meanwhile")


@only_on_postgres
def test_while_a_twin_is_being_made_the_job_is_left_and_its_neighbours_are_not(storage, other):
    """Nobody knows yet whether the twin will live. No batch fails, nothing waits for long."""
    worker = register(storage)
    plain = insert(storage, 3)
    enqueue(storage, *(unique_job(f"k{n}") for n in range(5)))
    held = claim(storage, worker, 20)
    run_sql(other.connection, "BEGIN")
    (twin,) = enqueue(other, unique_job("k2"))

    moves = storage.end_many([back(each, "reap") for each in held])

    (left,) = [each for each in held if row(each.id).unique_key == "k2"]
    assert moves == [(left.id, left.fence)]
    assert states(left.id, *plain) == ["running", "ready", "ready", "ready"]
    run_sql(other.connection, "COMMIT")
    moves = storage.end_many([back(left, "reap")])
    assert (moves, [job.id for job in moves.superseded]) == ([], [left.id])
    assert alive()["k2"] == {twin}


@only_on_postgres
def test_a_twin_that_is_not_made_after_all_leaves_the_job_to_wait_again(storage, other):
    (held,) = run(storage, register(storage), unique_job())
    run_sql(other.connection, "BEGIN")
    enqueue(other, unique_job())
    assert storage.end_many([back(held, "retry")]) == [(held.id, held.fence)]
    run_sql(other.connection, "ROLLBACK")
    assert storage.end_many([back(held, "retry")]) == []
    assert alive() == {"k": {held.id}}


@only_on_postgres
def test_many_blocked_jobs_do_not_hold_their_worker_up_for_long(storage, other, monkeypatch):
    monkeypatch.setattr(postgres_moving, "MOVE_SECONDS", 0.0)
    worker = register(storage)
    keys = [f"k{n}" for n in range(20)]
    held = run(storage, worker, *(unique_job(key) for key in keys))
    run_sql(other.connection, "BEGIN")
    enqueue(other, *(unique_job(key) for key in keys))
    assert len(storage.end_many([back(each, "retry") for each in held])) == 20
    run_sql(other.connection, "ROLLBACK")
    monkeypatch.undo()
    assert storage.end_many([back(each, "retry") for each in held]) == []


@only_on_postgres
def test_an_older_job_that_is_locked_stays_and_the_newer_gives_way(storage, other):
    worker = register(storage)
    (older,), (newer,) = run(storage, worker, unique_job()), run(storage, worker, unique_job())
    storage.end_many([back(older, "retry")])
    run_sql(other.connection, "BEGIN")
    other.lock_twins([older.id], alone=False)
    storage.end_many([back(newer, "retry")])
    run_sql(other.connection, "COMMIT")
    assert alive() == {"k": {older.id}}


@only_on_postgres
def test_in_somebody_elses_transaction_a_collision_breaks_nothing(storage, other):
    worker = register(storage)
    (held,) = run(storage, worker, unique_job())
    run_sql(other.connection, "BEGIN")
    enqueue(other, unique_job())
    run_sql(storage.connection, "BEGIN")
    storage.connection.autocommit = False
    assert storage.end_many([back(held, "retry")]) == [(held.id, held.fence)]
    (also,) = insert(storage)
    assert run_sql(storage.connection, "SHOW lock_timeout") == [("0",)]
    storage.connection.commit()
    run_sql(other.connection, "ROLLBACK")
    assert states(held.id, also) == ["running", "ready"]


def test_whatever_comes_back_and_is_enqueued_at_once_one_job_a_key_is_left(
    storage, other, open_storage
):
    """Real sessions: two workers end, two callers enqueue, one operator requeues the same keys."""
    keys = [f"k{n}" for n in range(4)]
    errors, stop = [], threading.Event()
    worker = register(storage)

    def loop(session, step):
        try:
            for n in range(60):
                if stop.is_set():
                    return
                step(session, n)
        except Exception as error:
            errors.append(error)
            stop.set()
        finally:
            connections.close_all()

    def work(session, n):
        held = claim(session, worker, 3)
        left = {each.id: each for each in held}
        way = list(BACK)[n % len(BACK)]
        for _ in range(50):
            moves = session.end_many([back(each, way, delay=0.0) for each in left.values()])
            left = {job_id: left[job_id] for job_id, _ in moves}
            if not left:
                break
        session.promote(100)
        session.cancel_waiting([each.id for each in held[n % 2 :]], "asked")

    def enqueue_some(session, n):
        jobs = [unique_job(key, delay=0.0) for key in keys]
        session.bounded(lambda: session.insert_unique(jobs), 5.0)

    def requeue(session, n):
        ended = list(Job.objects.filter(state="cancelled").values_list("id", flat=True)[:10])
        session.requeue_many(ended, AGING_SECONDS)

    steps = [work, work, enqueue_some, enqueue_some, requeue]
    sessions = [storage, other, *(open_storage() for _ in steps[2:])]
    threads = [
        threading.Thread(target=loop, args=pair) for pair in zip(sessions, steps, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    waiting = Job.objects.filter(state__in=WAITING).values_list("unique_key", flat=True)
    assert len(set(waiting)) == len(waiting)
    assert not Job.objects.filter(state="running").exists()


# --- requeue ----------------------------------------


def dead(storage, worker, *jobs):
    """Make dead letters of unique jobs, oldest first; return their ids."""
    ids = []
    for job in jobs:
        (held,) = run(storage, worker, job)
        storage.end_many([ending(held, "dead", outcome="failed", charged=True)])
        ids.append(held.id)
    return ids


def test_requeueing_several_of_one_key_lets_the_newest_live(storage):
    ids = dead(storage, register(storage), *(unique_job() for _ in range(4)), unique_job("other"))
    plain = insert(storage)
    storage.cancel_waiting(plain, "asked")

    moves = storage.requeue_many([*ids, *plain], AGING_SECONDS)

    assert set(moves) == {ids[3], ids[4], *plain}
    assert {job.id for job in moves.superseded} == set(ids[:3])
    assert states(*ids) == ["cancelled"] * 3 + ["ready"] * 2
    assert {row(each).reason for each in ids[:3]} == {"superseded"}


def test_a_requeued_job_whose_twin_lives_is_superseded(storage):
    worker = register(storage)
    (ended,) = dead(storage, worker, unique_job())
    (twin,) = enqueue(storage, unique_job())
    moves = storage.requeue_many([ended], AGING_SECONDS)
    assert (moves, [job.id for job in moves.superseded]) == ([], [ended])
    assert (row(ended).state, row(ended).reason) == ("cancelled", "superseded")
    before = row(ended).finished_at
    assert storage.requeue_many([ended], AGING_SECONDS).superseded
    assert row(ended).finished_at == before

    storage.cancel_waiting([twin], "asked")
    assert storage.requeue_many([ended], AGING_SECONDS) == [ended]
    assert alive() == {"k": {ended}}


def test_a_requeued_job_takes_the_place_of_one_that_will_never_start(storage):
    (old,) = enqueue(storage, unique_job())
    storage.cancel_waiting([old], "by hand")
    (late,) = enqueue(storage, unique_job(expires_at=datetime(2020, 1, 1, tzinfo=UTC)))
    moves = storage.requeue_many([old], AGING_SECONDS)
    assert (list(moves), [job.id for job in moves.superseded]) == ([old], [late])
    assert alive() == {"k": {old}}


def test_a_requeued_job_takes_the_place_of_an_older_that_waits(storage):
    worker = register(storage)
    older, newer = dead(storage, worker, unique_job(), unique_job())
    storage.requeue_many([older], AGING_SECONDS)
    due = NOON + timedelta(hours=1)
    moves = storage.requeue_many([newer], AGING_SECONDS, [due], now=NOON)
    assert (moves, [job.id for job in moves.superseded]) == ([newer], [older])
    assert states(older, newer) == ["cancelled", "scheduled"]
    assert row(newer).run_at == due


def test_a_job_in_its_window_is_requeued_under_the_key_it_still_holds(storage):
    (ended,) = dead(storage, register(storage), unique_job(until="done", unique_window=60.0))
    assert storage.requeue_many([ended], AGING_SECONDS) == [ended]


@only_on_postgres
def test_a_requeue_leaves_what_an_open_transaction_decides(storage, other):
    worker = register(storage)
    first, second = dead(storage, worker, unique_job("a"), unique_job("b"))
    run_sql(other.connection, "BEGIN")
    enqueue(other, unique_job("a"))
    moves = storage.requeue_many([first, second], AGING_SECONDS)
    assert (moves, moves.superseded) == ([second], [])
    run_sql(other.connection, "ROLLBACK")
    assert states(first, second) == ["dead", "ready"]
