"""Steps: recorded once for a job, whatever becomes of the attempt that ran them."""

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction

from jobqueue.exceptions import LeaseLost
from jobqueue.models import Step
from tests.engine import faults
from tests.engine.bench import Bench, Ran, effects, leave
from tests.engine.cutting import session_pid, terminate
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.engine.test_guard import STALE
from tests.storage.making import run_sql

POSTGRES = pytest.mark.postgres_only("on SQLite steps need a task with atomic=False")


def stepping(name="charge", result="ch_1", error=None, **options):
    """Return a body that runs one step and then fails or succeeds, and what the step was given."""
    calls: list[str] = []

    def step(key):
        calls.append(key)
        return result

    def body(context):
        value = context.step(name, step, context.step_key(name), **options)
        if error is not None and context.attempt == 1:
            raise error
        return value

    return body, calls


def recorded(job_id):
    steps = Step.objects.filter(job_id=job_id).order_by("id")
    return list(steps.values_list("name", "result", "fence"))


# --- kept ----------------------------------------


@pytest.mark.parametrize(
    "task", [plain_job, pytest.param(atomic_job, marks=POSTGRES)], ids=["not atomic", "atomic"]
)
def test_a_step_survives_the_failure_of_its_attempt_and_is_not_run_again(bench: Bench, task):
    body, calls = stepping(error=ValueError())
    ran = bench.run(body, task)
    assert ran.state == "retrying"
    assert recorded(ran.id) == [("charge", "ch_1", 1)]
    bench.again(ran, task)
    assert (ran.state, ran.job.result) == ("succeeded", "ch_1")
    assert calls == [f"{ran.id}:charge"]


def test_a_step_that_fails_is_not_recorded_and_runs_again_with_the_same_key(bench: Bench):
    keys = []

    def charge(key):
        keys.append(key)
        if len(keys) == 1:
            raise ValueError("gateway timeout")
        return "ch_2"

    ran = bench.run(
        lambda context: context.step("charge", charge, context.step_key("charge")), plain_job
    )
    assert recorded(ran.id) == []
    bench.again(ran, plain_job)
    assert ran.job.result == "ch_2"
    assert keys == [f"{ran.id}:charge"] * 2


def test_steps_of_one_job_have_names_of_their_own(bench: Bench):
    def body(context):
        return [context.step(name, str.upper, name) for name in ("reserve", "charge")]

    ran = bench.run(body, plain_job)
    assert ran.job.result == ["RESERVE", "CHARGE"]
    assert [name for name, _, _ in recorded(ran.id)] == ["reserve", "charge"]


def test_the_same_step_twice_in_one_attempt_runs_once(bench: Bench):
    calls = []

    def body(context):
        return [context.step("one", lambda: calls.append(1) or len(calls)) for _ in range(3)]

    assert bench.run(body, plain_job).job.result == [1, 1, 1]


@pytest.mark.parametrize("value", [0, "", [], None, False, {}, "null"], ids=repr)
def test_a_falsy_result_is_a_record_like_any_other(bench: Bench, value):
    body, calls = stepping(result=value, error=ValueError())
    ran = bench.run(body, plain_job)
    bench.again(ran, plain_job)
    assert (ran.job.result, type(ran.job.result)) == (value, type(value))
    assert len(calls) == 1


def test_the_first_run_sees_the_result_as_every_later_one_will(bench: Bench):
    seen = []

    def body(context):
        seen.append(context.step("pair", lambda: {1: (2, 3)}))
        if context.attempt == 1:
            raise ValueError

    ran = bench.run(body, plain_job)
    bench.again(ran, plain_job)
    assert seen == [{"1": [2, 3]}] * 2


def test_a_result_that_cannot_be_stored_fails_the_attempt(bench: Bench):
    body, calls = stepping(result=object())
    ran = bench.run(body, plain_job)
    assert (ran.state, recorded(ran.id)) == ("retrying", [])
    assert "result of step 'charge'" in ran.attempt.error_message
    assert len(calls) == 1


def test_keyword_arguments_reach_the_step(bench: Bench):
    def step(*, order):
        return order

    assert bench.run(lambda c: c.step("a", step, order=7), plain_job).job.result == 7


@pytest.mark.parametrize("name", ["", "x" * 256, "a\x00b"], ids=["empty", "long", "NUL"])
def test_a_name_that_cannot_be_kept_is_refused_before_the_step_runs(bench: Bench, name):
    body, calls = stepping(name=name)
    ran = bench.run(body, plain_job)
    assert ran.attempt.error_class == "jobqueue.exceptions.StepError"
    assert calls == []


def test_an_async_job_runs_its_steps_in_a_thread(bench: Bench):
    async def body(context):
        return await sync_to_async(context.step)("charge", str.upper, "x")

    ran = bench.run(body, async_job)
    assert (ran.job.result, len(recorded(ran.id))) == ("X", 1)


# --- guarded ----------------------------------------


@pytest.mark.parametrize("atomic", [False, True], ids=["plain step", "atomic step"])
def test_the_record_of_a_zombie_is_refused(bench: Bench, atomic):
    def body(context):
        return context.step("charge", lambda: bench.take_away(claim) and None, atomic=atomic)

    claim = bench.claim_one(body, plain_job)
    if atomic:
        bench.take_away(claim)
    ended = bench.execute(claim, plain_job)
    assert (ended.is_success, ended.failure) == (False, None)
    assert recorded(claim.id) == []


@pytest.mark.parametrize("stale", STALE.values(), ids=STALE.keys())
def test_a_record_under_a_stale_claim_is_an_exception(bench: Bench, stale):
    claim = bench.claim_one(leave, plain_job)
    with pytest.raises(LeaseLost):
        bench.storage.record_step(stale(claim), "charge", "1")
    assert recorded(claim.id) == []


def test_a_zombie_reads_the_record_of_its_successor_and_writes_nothing(bench: Bench):
    claim = bench.claim_one(stepping(result="zombie")[0], plain_job)
    taken = bench.take_away(claim)
    bench.storage.record_step(taken, "charge", '"successor"')
    ended = bench.execute(claim, plain_job)
    bench.flush(ended)
    assert recorded(claim.id) == [("charge", "successor", taken.fence)]
    assert Ran(claim.id).job.worker == taken.worker


# --- beside the job's own transaction ----------------------------------------


@POSTGRES
def test_a_record_does_not_wait_for_the_row_that_its_own_job_has_locked(bench: Bench):
    """Anything stronger than KEY SHARE would wait here for ever, unseen by the server."""
    with bench.environment.side_storage() as side:
        run_sql(side.connection, "SET lock_timeout = '10s'")

    def body(context):
        with context.atomic():
            leave(context)
        run_sql(connection, "SELECT 1 FROM jobqueue_job FOR NO KEY UPDATE")
        return context.step("charge", lambda: "ch_1")

    ran = bench.run(body)
    assert (ran.state, ran.job.result, ran.effects) == ("succeeded", "ch_1", ["done"])


@POSTGRES
def test_a_record_in_an_atomic_job_is_committed_before_the_job(bench: Bench):
    seen = []

    def body(context):
        leave(context)
        context.step("charge", lambda: "ch_1")
        found = run_sql(bench.storage.connection, "SELECT count(*) FROM jobqueue_step")
        seen.append((found[0][0], effects_elsewhere(bench)))

    bench.run(body)
    assert seen == [(1, 0)]


def effects_elsewhere(bench: Bench) -> int:
    return run_sql(bench.storage.connection, "SELECT count(*) FROM app_effect")[0][0]


@pytest.mark.sqlite_only("PostgreSQL has more than one writer")
def test_on_sqlite_a_step_in_an_atomic_task_says_what_it_needs(bench: Bench):
    body, calls = stepping()
    ran = bench.run(body)
    assert ran.attempt.error_class == "jobqueue.exceptions.StepError"
    assert "atomic=False" in ran.attempt.error_message
    assert calls == []


@pytest.mark.sqlite_only("PostgreSQL has more than one writer")
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded block", "plain block"])
def test_on_sqlite_a_step_in_a_transaction_is_refused_before_its_effect(bench: Bench, guarded):
    """Its record would wait for the transaction around it, in vain."""

    def body(context):
        with context.atomic() if guarded else transaction.atomic():
            context.step("charge", lambda: calls.append(1))

    calls = []
    ran = bench.run(body, plain_job)
    assert ran.attempt.error_class == "jobqueue.exceptions.StepError"
    assert "before" in ran.attempt.error_message
    assert calls == []


@POSTGRES
def test_a_step_in_a_guarded_block_is_recorded_whatever_becomes_of_the_block(bench: Bench):
    def body(context):
        with context.atomic():
            context.step("charge", lambda: "ch_1")
            raise ValueError("the block rolls back")

    ran = bench.run(body, plain_job)
    assert [name for name, *_ in recorded(ran.id)] == ["charge"]


@POSTGRES
def test_a_side_connection_that_was_lost_is_replaced(bench: Bench, admin):
    def body(context):
        with bench.environment.side_storage() as storage:
            pid = session_pid(storage.connection)
        if context.attempt == 1:
            terminate(admin, pid)
        return context.step("charge", lambda: "ch_1")

    ran = bench.run(body)
    assert ran.state == "retrying"
    bench.again(ran)
    assert (ran.state, ran.job.result) == ("succeeded", "ch_1")


# --- atomic steps ----------------------------------------


def atomic_step(error=None):
    def body(context):
        context.step("ship", lambda: leave(context, "shipped"), atomic=True)
        if error is not None and context.attempt == 1:
            raise error

    return body


def test_an_atomic_step_commits_its_writes_with_its_record(bench: Bench):
    ran = bench.run(atomic_step(ValueError()), plain_job)
    assert (ran.state, ran.effects) == ("retrying", ["shipped"])
    bench.again(ran, plain_job)
    assert (ran.state, ran.effects) == ("succeeded", ["shipped"])


def test_an_atomic_step_that_cannot_be_recorded_leaves_no_writes(bench: Bench):
    def fail(storage, proceed):
        proceed()
        raise OSError("cut between the record and the commit")

    with faults.at("record_step", faults.once(fail)):
        ran = bench.run(atomic_step(), plain_job)
    assert (ran.state, ran.effects, recorded(ran.id)) == ("retrying", [], [])
    bench.again(ran, plain_job)
    assert (ran.state, ran.effects) == ("succeeded", ["shipped"])


def test_a_plain_step_that_cannot_be_recorded_repeats_its_effect(bench: Bench):
    """At least once: that is what the key is for."""

    def body(context):
        context.step("ship", lambda: leave(context, context.step_key("ship")))

    def fail(storage, proceed):
        raise OSError("cut between the effect and its record")

    with faults.at("record_step", faults.once(fail)):
        ran = bench.run(body, plain_job)
    bench.again(ran, plain_job)
    assert ran.effects == [f"{ran.id}:ship"] * 2


def test_an_atomic_step_needs_a_task_that_is_not_atomic(bench: Bench):
    ran = bench.run(atomic_step())
    assert ran.attempt.error_class == "jobqueue.exceptions.StepError"
    assert effects(ran.id) == []
