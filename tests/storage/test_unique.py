"""Unique jobs: who holds a key, and what storage does for an enqueue that meets the holder."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from jobqueue.exceptions import KeyBusy
from jobqueue.ids import new_identity
from jobqueue.models import Job, JobTag
from jobqueue.states import FINISHED, WAITING, State
from jobqueue.storage import Storage, storage_for
from tests.storage.making import TASK, claim, insert, new_job, register, row, run_sql, states

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HELD_LONG_ENOUGH = 0.2
"""Seconds that an enqueue waits here for a lock."""


def unique_job(key="k", until="start", **changes):
    return new_job(unique_key=key, unique_until=until, **changes)


def insert_unique(storage, *jobs, now=None):
    """Insert what can be; return the ids of those inserted."""
    return [each.id for each in storage.insert_unique(jobs, now)]


def put(job, state, **changes):
    """Bring a job into a state, with what its constraints ask for."""
    values = {"state": state, "worker": None, "claimed_at": None, "deadline": None, "reason": ""}
    if state == "running":
        values |= {"worker": new_identity(), "claimed_at": NOON, "deadline": NOON, "fence": 1}
    if state in FINISHED:
        values["finished_at"] = NOON
    if state == "blocked":
        values["reason"] = "unknown task"
    Job.objects.filter(pk=job.id).update(**values | changes)


# --- who holds a key ----------------------------------------

HOLDS = {
    ("start", None): WAITING,
    ("done", None): WAITING | {State.RUNNING},
    ("done", 60.0): set(State),
}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize(("until", "window"), HOLDS, ids=str)
def test_a_job_holds_its_key_as_long_as_it_says(storage, state, until, window):
    holder = unique_job(until=until, unique_window=window)
    insert_unique(storage, holder, now=NOON)
    put(holder, state)
    holds = state in HOLDS[until, window]

    assert [twin.row.id for twin in storage.find_twins(TASK, ["k"], NOON)] == [holder.id] * holds
    newcomer = unique_job()
    assert insert_unique(storage, newcomer) == [] if holds else [newcomer.id]


def test_a_key_is_of_one_task(storage):
    one, other = unique_job(), unique_job(task="app.other")
    assert insert_unique(storage, one, other) == [one.id, other.id]
    assert insert_unique(storage, unique_job(), unique_job(task="app.other")) == []


def test_jobs_without_a_key_are_nobodys_twins(storage):
    insert(storage, 3)
    assert storage.find_twins(TASK, ["k"]) == []


def test_of_several_those_are_inserted_whose_key_is_free_with_their_tags(storage):
    insert_unique(storage, unique_job("b"))
    jobs = [unique_job(key, tags=(key,)) for key in "abc"]
    assert set(insert_unique(storage, *jobs)) == {jobs[0].id, jobs[2].id}
    assert sorted(JobTag.objects.values_list("tag", flat=True)) == ["a", "c"]


def test_a_key_and_its_rules_are_in_the_row(storage):
    job = unique_job("é" * 255, "done", unique_window=60.0)
    insert_unique(storage, job, now=NOON)
    stored = row(job.id)
    assert (stored.unique_key, stored.unique_until) == ("é" * 255, "done")
    assert stored.unique_window_end == NOON + timedelta(seconds=60)


# --- twins ----------------------------------------


def test_a_twin_is_overdue_once_it_could_have_started_a_while_ago(storage):
    later = NOON + timedelta(seconds=5)
    insert_unique(storage, unique_job("ready"), unique_job("due", delay=3_600.0), now=NOON)
    parked, running = unique_job("parked"), unique_job("running", "done")
    insert_unique(storage, parked, running, now=NOON)
    put(parked, "blocked")
    put(running, "running")
    keys = ["ready", "due", "parked", "running"]

    def overdue(now):
        return {twin.key for twin in storage.find_twins(TASK, keys, now) if twin.is_overdue}

    assert overdue(later) == set()
    assert overdue(later + timedelta(milliseconds=1)) == {"ready"}
    assert overdue(later + 2 * HOUR) == {"ready", "due"}


@pytest.mark.parametrize("state", sorted(FINISHED | {State.RUNNING}))
def test_only_an_ended_job_gives_up_its_key_when_its_window_is_over(storage, state):
    holder = unique_job(until="done", unique_window=60.0)
    insert_unique(storage, holder, now=NOON)
    put(holder, state)
    over = NOON + timedelta(seconds=60)
    has_ended = state in FINISHED

    (twin,) = storage.find_twins(TASK, ["k"], over - timedelta(milliseconds=1))
    assert not twin.has_lapsed
    storage.lapse_windows([holder.id], over - timedelta(milliseconds=1))
    (twin,) = storage.find_twins(TASK, ["k"], over)
    assert twin.has_lapsed is has_ended
    storage.lapse_windows([holder.id], over)
    assert len(storage.find_twins(TASK, ["k"], over)) == (not has_ended)
    assert row(holder.id).unique_key == "k"


@pytest.mark.parametrize("state", sorted(WAITING | {State.RUNNING}))
def test_only_a_waiting_job_gives_up_its_key_when_its_time_to_start_has_passed(storage, state):
    holder = unique_job(until="done", expires_in=60.0)
    insert_unique(storage, holder, now=NOON)
    put(holder, state)
    too_late = NOON + timedelta(seconds=60)
    in_time = too_late - timedelta(milliseconds=1)
    waits = state in WAITING

    (twin,) = storage.find_twins(TASK, ["k"], in_time)
    assert not twin.has_expired
    assert storage.expire_twins([holder.id], in_time) == []
    (twin,) = storage.find_twins(TASK, ["k"], too_late)
    assert twin.has_expired is waits
    ended = storage.expire_twins([holder.id], too_late)
    assert [job.id for job in ended] == [holder.id] * waits
    assert len(storage.find_twins(TASK, ["k"], too_late)) == (not waits)
    assert row(holder.id).reason == ("expired" if waits else "")


def test_replacing_gives_a_waiting_job_other_arguments_at_its_place(storage):
    twin, other = unique_job(), unique_job(arguments='{"args":[2],"kwargs":{}}', expires_in=60.0)
    insert_unique(storage, twin, now=NOON)
    before = row(twin.id)

    (changed,) = storage.replace_twins({twin.id: other}, NOON + HOUR)

    after = row(twin.id)
    assert (changed.id, changed.state) == (twin.id, "ready")
    assert after.arguments == {"args": [2], "kwargs": {}}
    assert after.expires_at == NOON + HOUR + timedelta(seconds=60)
    assert (after.rank, after.run_at) == (before.rank, before.run_at)
    assert after.version == before.version + 1


def test_replacing_the_priority_is_worth_what_it_would_have_been_from_the_start(storage):
    low, high = unique_job("low", priority=-3), unique_job("high", priority=7)
    insert_unique(storage, low, high, now=NOON)
    storage.replace_twins({low.id: high}, NOON + HOUR)
    assert (row(low.id).priority, row(low.id).rank) == (7, row(high.id).rank)


RESCHEDULED = {
    ("ready", 60.0): "scheduled",
    ("ready", None): "ready",
    ("scheduled", None): "ready",
    ("scheduled", 60.0): "scheduled",
    ("retrying", None): "ready",
    ("retrying", 60.0): "retrying",
    ("blocked", None): "blocked",
    ("blocked", 60.0): "scheduled",
}


def test_rescheduling_lets_no_job_of_a_schedule_go_before_earlier_ones(storage):
    twin = unique_job(schedule="report", tick=NOON, blocked="overlap")
    insert_unique(storage, twin, now=NOON)
    storage.reschedule_twins({twin.id: unique_job(delay=60.0)}, NOON)
    after = row(twin.id)
    assert (after.state, after.reason) == ("blocked", "overlap")
    assert after.run_at == NOON + timedelta(seconds=60)


@pytest.mark.parametrize(("state", "delay"), RESCHEDULED, ids=str)
def test_rescheduling_moves_a_waiting_job_to_its_new_time(storage, state, delay):
    twin = unique_job(priority=2)
    insert_unique(storage, twin, now=NOON)
    put(twin, state)

    (changed,) = storage.reschedule_twins({twin.id: unique_job(delay=delay)}, NOON + HOUR)

    job = row(twin.id)
    due = NOON + HOUR + timedelta(seconds=delay or 0)
    assert (changed.state, job.state) == (RESCHEDULED[state, delay],) * 2
    assert (changed.run_at, job.run_at) == (due, due)
    assert job.rank == round(due.timestamp() * 1_000_000) - 2 * 60_000_000
    assert bool(job.reason) is (job.state == "blocked")


@pytest.mark.parametrize("state", sorted(FINISHED | {State.RUNNING}))
@pytest.mark.parametrize("change", ["replace_twins", "reschedule_twins"])
def test_only_a_waiting_job_is_changed(storage, state, change):
    twin = unique_job(until="done", unique_window=3_600.0)
    insert_unique(storage, twin, now=NOON)
    put(twin, state)
    before = Job.objects.values().get()
    assert getattr(storage, change)({twin.id: unique_job(priority=5)}) == []
    assert Job.objects.values().get() == before


# --- one enqueue ----------------------------------------


class Boom(Exception):
    """Raised in the middle of a block."""


def test_a_bounded_block_leaves_nothing_of_itself_behind_when_it_fails(storage):
    def fail():
        insert_unique(storage, unique_job())
        raise Boom

    with pytest.raises(Boom):
        storage.bounded(fail, 1.0)
    assert Job.objects.count() == 0
    assert storage.bounded(lambda: insert_unique(storage, unique_job()), 1.0)
    assert Job.objects.count() == 1


def test_inside_a_transaction_a_block_that_fails_leaves_the_rest():
    callers = storage_for(connection)

    def fail():
        insert(callers)
        raise Boom

    with transaction.atomic():
        (kept,) = insert(callers)
        with pytest.raises(Boom):
            callers.bounded(fail, 1.0)
        also = callers.bounded(lambda: insert(callers), 1.0)
    assert set(Job.objects.values_list("pk", flat=True)) == {kept, *also}


only_on_postgres = pytest.mark.postgres_only("SQLite has one writer and no row locks")


def timeout_of(storage: Storage) -> str:
    return run_sql(storage.connection, "SHOW lock_timeout")[0][0]


@only_on_postgres
@pytest.mark.parametrize(
    ("before", "within"), [("0", "250ms"), ("100ms", "100ms"), ("5s", "250ms")]
)
def test_the_bound_is_the_closer_one_and_goes_with_the_block(storage, before, within):
    run_sql(storage.connection, "BEGIN")
    storage.connection.autocommit = False
    run_sql(storage.connection, f"SET LOCAL lock_timeout = '{before}'")
    assert storage.bounded(lambda: timeout_of(storage), 0.25) == within
    assert timeout_of(storage) == before
    with pytest.raises(Boom):
        storage.bounded(lambda: (_ for _ in ()).throw(Boom), 0.25)
    assert timeout_of(storage) == before
    storage.connection.rollback()


@only_on_postgres
def test_a_key_that_an_open_transaction_is_enqueueing_is_busy(storage, other):
    run_sql(other.connection, "BEGIN")
    insert_unique(other, unique_job())
    with pytest.raises(KeyBusy):
        storage.bounded(lambda: insert_unique(storage, unique_job()), HELD_LONG_ENOUGH)
    run_sql(other.connection, "COMMIT")
    assert storage.bounded(lambda: insert_unique(storage, unique_job()), HELD_LONG_ENOUGH) == []


@only_on_postgres
def test_an_enqueue_waits_for_one_in_flight_and_takes_the_key_if_it_fails(storage, other):
    run_sql(other.connection, "BEGIN")
    insert_unique(other, unique_job())
    run_sql(other.connection, "ROLLBACK")
    assert len(insert_unique(storage, unique_job())) == 1


@only_on_postgres
@pytest.mark.parametrize("alone", [False, True])
def test_a_locked_twin_does_not_start_before_the_enqueue_has_ended(storage, other, alone):
    worker = register(storage)
    twin = unique_job()
    insert_unique(storage, twin)
    run_sql(other.connection, "BEGIN")
    assert other.lock_twins([twin.id], alone=alone) == {twin.id}
    assert claim(storage, worker) == []
    run_sql(other.connection, "COMMIT")
    assert [held.id for held in claim(storage, worker)] == [twin.id]
    assert other.lock_twins([twin.id], alone=alone) == set()


@only_on_postgres
def test_several_enqueues_lock_one_twin_unless_it_is_its_turn(storage, other, open_storage):
    twin = unique_job()
    insert_unique(storage, twin)
    for each in (storage, other):
        run_sql(each.connection, "BEGIN")
        assert each.lock_twins([twin.id], alone=False) == {twin.id}
    third = open_storage()
    run_sql(third.connection, "SET lock_timeout = '200ms'")
    with pytest.raises(OperationalError):
        third.lock_twins([twin.id], alone=True)
    for each in (storage, other):
        run_sql(each.connection, "COMMIT")


@only_on_postgres
def test_a_twin_that_is_being_claimed_has_started(storage, other):
    """The claim is in flight when the enqueue looks: it waits, and finds the twin gone."""
    worker = register(storage)
    insert_unique(storage, unique_job())
    run_sql(other.connection, "BEGIN")
    assert len(claim(other, worker)) == 1
    with pytest.raises(KeyBusy):
        storage.bounded(lambda: insert_unique(storage, unique_job()), HELD_LONG_ENOUGH)
    run_sql(other.connection, "COMMIT")
    assert len(insert_unique(storage, unique_job())) == 1
    assert sorted(Job.objects.values_list("state", flat=True)) == ["ready", "running"]


def test_the_database_itself_refuses_two_holders_and_half_a_rule(storage):
    first, second = unique_job(), unique_job("other")
    insert_unique(storage, first, second)
    with pytest.raises(IntegrityError, match="unique"):
        Job.objects.filter(pk=second.id).update(unique_key="k")
    with pytest.raises(IntegrityError, match="jobqueue_job_unique_until"):
        Job.objects.filter(pk=second.id).update(unique_until="")
    assert states(first.id, second.id) == ["ready", "ready"]
