"""Unique jobs that come back: by their worker, by recovery, and what is told of it."""

from contextlib import contextmanager
from uuid import UUID, uuid4

import pytest

from jobqueue.compat import task_finished
from jobqueue.engine.outcomes import Ended, decide_failure
from jobqueue.engine.recovery import Death, recover, release_uncharged
from jobqueue.events import subscribe
from jobqueue.exceptions import Snooze
from jobqueue.models import Job
from jobqueue.states import LIVE
from jobqueue.storage import storage_for
from jobqueue.storage.connections import open_connection
from jobqueue.storage.records import Claim
from tests.engine.bench import Bench, Ran
from tests.engine.tasks import atomic_job, bodies, plain_job
from tests.storage.making import new_job, refusing_ends, register, run_sql

KEY = "account:7"


@pytest.fixture
def told():
    """The events, and the ids of the jobs that task_finished was sent for."""
    events, finished = [], []

    def hear(sender, task_result, **kwargs):
        finished.append(task_result.id)

    stop = subscribe(events.append)
    task_finished.connect(hear)
    yield events, finished
    task_finished.disconnect(hear)
    stop()


def enqueue(body=None, task=atomic_job, key=KEY) -> UUID:
    """Make a unique job; it must not meet a twin."""
    name = uuid4().hex
    bodies[name] = body or (lambda context: None)
    result = task.using(unique_key=key).enqueue(name)
    assert not result.already_enqueued
    return UUID(result.id)


def start(bench: Bench, body=None, task=atomic_job, key=KEY) -> Claim:
    """Make a unique job and claim it."""
    job = enqueue(body, task, key)
    (claim,) = bench.claim(task)
    assert claim.id == job
    return claim


def fail(context):
    raise ValueError("fails on purpose")


def failed(bench: Bench, claim: Claim, error: BaseException) -> Ended:
    return Ended(
        claim, 0.0, 0.0, failure=decide_failure(claim, error, None, bench.environment.options)
    )


def alive() -> list[UUID]:
    return list(Job.objects.filter(state__in=LIVE).values_list("pk", flat=True))


@contextmanager
def being_made(key=KEY, task=atomic_job):
    """A twin in a transaction that is still open, and rolls back in the end."""
    session = open_connection("default")
    storage = storage_for(session)
    run_sql(session, "BEGIN")
    job = new_job(task=task.module_path, unique_key=key, unique_until="start")
    assert storage.insert_unique([job])
    try:
        yield
    finally:
        run_sql(session, "ROLLBACK")
        session.close()


# --- by its worker ----------------------------------------


@pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "plain"])
def test_a_job_that_fails_while_its_twin_waits_leaves_the_twin(bench: Bench, told, task):
    events, finished = told
    claim = start(bench, fail, task)
    twin = enqueue(task=task)

    bench.flush(bench.execute(claim, task))

    ran = Ran(claim.id)
    assert (ran.state, ran.job.reason, ran.attempt.outcome) == ("cancelled", "superseded", "failed")
    assert ran.attempt.error_message == "fails on purpose"
    assert alive() == [twin]
    (event,) = [event for event in events if event.name == "job.cancelled"]
    assert (event.facts["reason"], event.facts["outcome"]) == ("superseded", "failed")
    assert finished == [str(claim.id)]


def test_a_job_that_snoozes_while_its_twin_waits_leaves_the_twin(bench: Bench):
    def snooze(context):
        raise Snooze(60)

    claim = start(bench, snooze)
    twin = enqueue()
    bench.flush(bench.execute(claim))
    assert (Ran(claim.id).attempt.outcome, alive()) == ("snoozed", [twin])


def test_an_older_that_waits_gives_way_and_is_told_of(bench: Bench, told):
    events, finished = told
    older, newer = start(bench), start(bench)
    if newer.id < older.id:  # of one millisecond
        older, newer = newer, older
    bench.flush(failed(bench, older, ValueError()))
    bench.flush(failed(bench, newer, ValueError()))
    assert (Ran(older.id).state, Ran(newer.id).state) == ("cancelled", "retrying")
    assert finished == [str(older.id)]
    assert [e.facts["job"] for e in events if e.name == "job.cancelled"] == [older.id]


def test_a_job_that_enqueues_its_successor_and_fails_leaves_it(bench: Bench):
    made = []

    def body(context):
        made.append(enqueue(task=plain_job))
        raise ValueError

    claim = start(bench, body, plain_job)
    bench.flush(bench.execute(claim, plain_job))
    assert (Ran(claim.id).state, alive()) == ("cancelled", made)


def test_an_atomic_job_takes_its_successor_back_with_itself(bench: Bench):
    def body(context):
        enqueue()
        raise ValueError

    claim = start(bench, body)
    bench.flush(bench.execute(claim))
    assert (Ran(claim.id).state, alive()) == ("retrying", [claim.id])


only_on_postgres = pytest.mark.postgres_only("SQLite has one writer: nothing happens meanwhile")


@only_on_postgres
def test_an_end_that_an_open_transaction_decides_about_is_kept_and_written_later(bench: Bench):
    blocked, free = start(bench), start(bench, key="other")
    ends = [failed(bench, claim, ValueError()) for claim in (blocked, free)]
    with being_made():
        assert bench.flush(*ends) == [ends[0]]
        assert (Ran(blocked.id).state, Ran(free.id).state) == ("running", "retrying")
    assert bench.flush(ends[0]) == []
    assert Ran(blocked.id).state == "retrying"


# --- by recovery ----------------------------------------


def test_a_dead_worker_with_twins_waiting_leaves_one_live_job_a_key(bench: Bench, told):
    events, finished = told
    worker = register(bench.storage)
    keys = [f"account:{n}" for n in range(6)]
    jobs = {key: enqueue(key=key) for key in keys}
    names, queues = [atomic_job.module_path], [atomic_job.queue_name]
    assert len(bench.storage.claim_many(worker, queues, names, 10)) == 6
    twins = {key: enqueue(key=key) for key in keys[:3]}

    found = recover(bench.storage, Death(worker, "killed"), bench.environment.options)

    assert (found.is_settled, found.reaped, found.released, found.buried) == (True, 6, 0, 0)
    assert set(alive()) == {*twins.values(), *(jobs[key] for key in keys[3:])}
    reaped = {e.facts["job"]: e.facts["state"] for e in events if e.name == "job.reaped"}
    assert [reaped[jobs[key]] for key in keys] == ["cancelled"] * 3 + ["ready"] * 3
    assert sorted(finished) == sorted(str(jobs[key]) for key in keys[:3])


def test_what_had_not_started_gives_way_too_and_is_told_of(bench: Bench, told):
    claim = start(bench)
    twin = enqueue()
    held = bench.storage.running_of([bench.identity])
    assert release_uncharged(bench.storage, held) == 1
    assert (alive(), Ran(claim.id).attempts) == ([twin], [])
    assert told[1] == [str(claim.id)]


@only_on_postgres
def test_recovery_leaves_a_job_that_an_open_transaction_decides_about_to_its_next_round(
    bench: Bench,
):
    worker = register(bench.storage)
    blocked, free = enqueue(), enqueue(key="other")
    names, queues = [atomic_job.module_path], [atomic_job.queue_name]
    bench.storage.claim_many(worker, queues, names, 10)
    with being_made():
        found = recover(bench.storage, Death(worker, "killed"), bench.environment.options)
        assert not found.is_settled
        assert (Ran(blocked).state, Ran(free).state) == ("running", "ready")
    assert [orphan.worker for orphan in bench.storage.orphan_workers()] == [worker]
    assert recover(bench.storage, Death(worker, "killed"), bench.environment.options).is_settled
    assert Ran(blocked).state == "ready"


def test_what_was_written_beside_a_unique_job_that_is_refused_is_told_of_all_the_same(
    bench: Bench, told
):
    events, finished = told
    worker = register(bench.storage)
    plain, unique = bench.enqueue(lambda context: None), enqueue()
    Job.objects.filter(pk=plain).update(on_crash="bury")
    names, queues = [atomic_job.module_path], [atomic_job.queue_name]
    assert len(bench.storage.claim_many(worker, queues, names, 10)) == 2
    with refusing_ends(unique):
        found = recover(bench.storage, Death(worker, "killed"), bench.environment.options)
    assert (Ran(plain).state, Ran(unique).state) == ("dead", "running")
    assert (found.is_settled, found.buried) == (False, 1)
    reaped = [event.facts["job"] for event in events if event.name == "job.reaped"]
    assert (reaped, finished) == ([plain], [str(plain)])


def test_work_that_kills_its_workers_ends_as_poison_however_often_it_is_asked_for(bench: Bench):
    """Each death leaves a fresh twin: without its suspicions the fleet would crash for ever."""
    deaths = 0
    enqueue()
    while not Job.objects.filter(state="dead").exists():
        Job.objects.filter(state="retrying").update(state="ready")
        worker = register(bench.storage)
        names, queues = [atomic_job.module_path], [atomic_job.queue_name]
        claims = bench.storage.claim_many(worker, queues, names, 1)
        (claim,) = claims or bench.storage.claim_alone(worker, queues, names)
        enqueue()  # somebody goes on asking for it
        recover(bench.storage, Death(worker, "killed"), bench.environment.options)
        deaths += 1
        assert deaths <= 3
    assert (Ran(claim.id).state, Ran(claim.id).job.reason) == ("dead", "poison")
    assert deaths == 3
    assert len(alive()) == 1
