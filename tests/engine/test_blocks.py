"""``context.atomic()`` keeps zombies out; ``context.commit()`` ends the job with its writes."""

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction

from jobqueue.exceptions import LeaseLost, StepError
from jobqueue.storage.records import Ending
from tests.engine import faults
from tests.engine.bench import Bench, Ran, effects, leave
from tests.engine.cutting import commit_and_lose_the_answer, session_pid, terminate
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.storage.making import run_sql

POSTGRES = pytest.mark.postgres_only("SQLite has no network between COMMIT and its answer")


def committing(context, result=None, label="done"):
    with context.atomic():
        leave(context, label)
        context.commit(result)


# --- commit ----------------------------------------


def test_the_last_writes_and_the_completion_commit_together(bench: Bench):
    claim = bench.claim_one(lambda context: committing(context, {"id": 1}), plain_job)
    ended = bench.execute(claim, plain_job)
    assert ended.committed
    ran = Ran(claim.id)
    assert (ran.state, ran.job.result, ran.effects) == ("succeeded", {"id": 1}, ["done"])
    assert ran.attempt.outcome == "succeeded"


def test_what_the_task_returns_after_commit_does_not_count(bench: Bench):
    def body(context):
        committing(context, "committed")
        return "returned"

    assert bench.run(body, plain_job).job.result == "committed"


def test_a_job_that_raises_after_commit_has_succeeded(bench: Bench):
    def body(context):
        committing(context)
        raise ValueError("too late")

    ran = bench.run(body, plain_job)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    assert ran.attempt.outcome == "succeeded"


def test_a_block_that_raises_after_commit_was_called_commits_nothing(bench: Bench):
    def body(context):
        with context.atomic():
            leave(context)
            context.commit()
            raise ValueError("in time")

    ran = bench.run(body, plain_job)
    assert (ran.state, ran.effects) == ("retrying", [])
    assert ran.attempt.error_message == "in time"


def test_a_job_whose_block_failed_may_try_again(bench: Bench):
    def body(context):
        try:
            with context.atomic():
                leave(context, "first")
                context.commit("first")
                raise ValueError
        except ValueError:
            committing(context, "second", "second")

    ran = bench.run(body, plain_job)
    assert (ran.job.result, ran.effects) == ("second", ["second"])


def test_a_hook_that_raises_after_the_block_changes_nothing(bench: Bench):
    reached = []

    def hook():
        raise ValueError("in the hook")

    def body(context):
        with context.atomic():
            leave(context)
            transaction.on_commit(hook)
            context.commit()
        reached.append(1)

    ran = bench.run(body, plain_job)
    assert (ran.state, ran.effects, reached) == ("succeeded", ["done"], [1])


def test_a_result_that_cannot_be_stored_is_refused_in_the_block(bench: Bench):
    ran = bench.run(lambda context: committing(context, object()), plain_job)
    assert (ran.state, ran.effects) == ("retrying", [])


def test_a_block_rolled_back_by_hand_is_no_success(bench: Bench):
    def body(context):
        with context.atomic():
            leave(context)
            transaction.set_rollback(True)
            context.commit()

    ran = bench.run(body, plain_job)
    assert (ran.state, ran.effects) == ("retrying", [])


def test_an_async_job_commits_in_a_function_of_its_own(bench: Bench):
    async def body(context):
        await sync_to_async(committing)(context, "async")

    ran = bench.run(body, async_job)
    assert (ran.state, ran.job.result, ran.effects) == ("succeeded", "async", ["done"])


# --- wrong use ----------------------------------------


def nested(context):
    with context.atomic(), context.atomic():
        leave(context)


def after_commit(context):
    committing(context)
    with context.atomic():
        leave(context, "after")


def outside(context):
    leave(context)
    context.commit()


@pytest.mark.parametrize(
    ("body", "task"),
    [(outside, plain_job), (nested, plain_job), (committing, atomic_job)],
    ids=["outside a block", "nested", "in an atomic task"],
)
def test_a_wrong_use_says_what_to_do(bench: Bench, body, task):
    ran = bench.run(body, task)
    assert (ran.state, ran.attempt.error_class) == ("retrying", "jobqueue.exceptions.StepError")


def test_nothing_can_be_added_to_a_job_that_was_committed(bench: Bench):
    errors = []

    def body(context):
        try:
            after_commit(context)
        except StepError as error:
            errors.append(error)

    ran = bench.run(body, plain_job)
    assert len(errors) == 1
    assert (ran.state, ran.effects) == ("succeeded", ["done"])


def test_a_block_cannot_hide_in_a_transaction_of_the_jobs_own(bench: Bench):
    """The outer transaction could roll back what commit() has promised."""

    def body(context):
        with transaction.atomic():
            committing(context)

    ran = bench.run(body, plain_job)
    assert (ran.state, ran.effects) == ("retrying", [])
    assert "durable" in ran.attempt.error_message


# --- a fence ----------------------------------------


def test_a_block_without_commit_keeps_its_writes(bench: Bench):
    def body(context):
        with context.atomic():
            leave(context, "first")
        with context.atomic():
            leave(context, "second")
        return "returned"

    ran = bench.run(body, plain_job)
    assert (ran.job.result, ran.effects) == ("returned", ["first", "second"])


@pytest.mark.parametrize("task", [plain_job, atomic_job], ids=["not atomic", "atomic"])
def test_a_zombie_does_not_get_into_a_block(bench: Bench, task):
    reached = []

    def body(context):
        with context.atomic():
            reached.append(1)
            leave(context, "zombie")

    claim = bench.claim_one(body, task)
    bench.take_away(claim)
    ended = bench.execute(claim, task)
    assert reached == []
    assert (ended.is_success, ended.failure) == (False, None)
    assert effects(claim.id) == []


@pytest.mark.postgres_only("on SQLite the one write lock keeps everybody waiting")
@pytest.mark.parametrize("task", [plain_job, atomic_job], ids=["not atomic", "atomic"])
def test_nobody_takes_the_job_away_while_a_block_is_open(bench: Bench, task):
    refused = []

    def body(context):
        with context.atomic():
            leave(context)
            lost = Ending(
                id=claim.id,
                fence=claim.fence,
                worker=claim.worker,
                state="ready",
                outcome="lost",
            )
            refused.extend(bench.storage.end_many([lost]))

    claim = bench.claim_one(body, task)
    bench.flush(bench.execute(claim, task))
    assert refused == [(claim.id, claim.fence)]
    assert (Ran(claim.id).state, effects(claim.id)) == ("succeeded", ["done"])


def test_a_job_taken_away_between_two_blocks_does_not_get_into_the_second(bench: Bench):
    def body(context):
        with context.atomic():
            leave(context, "owner")
        bench.take_away(claim)
        with pytest.raises(LeaseLost), context.atomic():
            leave(context, "zombie")
        committing(context)

    claim = bench.claim_one(body, plain_job)
    ended = bench.execute(claim, plain_job)
    assert (ended.is_success, ended.failure) == (False, None)
    assert effects(claim.id) == ["owner"]


@POSTGRES
def test_a_block_lets_the_server_end_a_session_that_sleeps_in_it(bench: Bench):
    shown = []

    def body(context):
        with context.atomic():
            shown.extend(run_sql(connection, "SHOW idle_in_transaction_session_timeout"))
        shown.extend(run_sql(connection, "SHOW idle_in_transaction_session_timeout"))

    bench.run(body, plain_job)
    lease = int(bench.environment.options.lease_seconds)
    assert shown == [(f"{lease}s",), ("0",)]


@POSTGRES
def test_a_block_in_an_atomic_task_does_not_limit_the_rest_of_its_transaction(bench: Bench):
    """The task may think for longer than a lease after the block; its session must not be ended."""
    shown = []

    def body(context):
        with context.atomic():
            leave(context)
        shown.extend(run_sql(connection, "SHOW idle_in_transaction_session_timeout"))

    assert bench.run(body).state == "succeeded"
    assert shown == [("0",)]


# --- a connection lost around COMMIT ----------------------------------------


def after_finish(what):
    def hook(storage, proceed):
        answer = proceed()
        what(storage.connection)
        return answer

    return faults.at("finish_one", faults.once(hook))


@POSTGRES
def test_a_commit_whose_answer_is_lost_has_happened(bench: Bench, admin):
    reached = []

    def body(context):
        committing(context)
        reached.append(1)

    claim = bench.claim_one(body, plain_job)
    with after_finish(lambda c: commit_and_lose_the_answer(admin, c.connection)):
        ended = bench.execute(claim, plain_job)
    assert ended.committed
    assert reached == [1]
    assert (Ran(claim.id).state, effects(claim.id)) == ("succeeded", ["done"])


@POSTGRES
def test_a_block_whose_commit_was_lost_raises_and_may_be_run_again(bench: Bench, admin):
    tries = []

    def body(context):
        for _ in range(2):
            tries.append(1)
            try:
                committing(context, "done")
                return
            except Exception:
                pass

    with after_finish(lambda c: terminate(admin, session_pid(c))):
        ran = bench.run(body, plain_job)
    assert len(tries) == 2
    assert (ran.state, ran.job.result, ran.effects) == ("succeeded", "done", ["done"])


@POSTGRES
def test_a_block_whose_commit_was_lost_fails_a_job_that_does_not_try_again(bench: Bench, admin):
    with after_finish(lambda c: terminate(admin, session_pid(c))):
        ran = bench.run(committing, plain_job)
    assert (ran.state, ran.effects, ran.job.failures) == ("retrying", [], 1)
    assert bench.run(leave).effects == ["done"]
