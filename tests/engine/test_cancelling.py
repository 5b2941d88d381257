"""Requests to cancel what runs: whatever becomes of the run, the job does not run again."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobqueue.compat import task_finished
from jobqueue.engine.recovery import Death, reap_overdue, recover, release_uncharged
from jobqueue.engine.sweeps import obey_requests
from jobqueue.exceptions import Cancel, GiveUp, LeaseLost, Retry, Snooze
from jobqueue.storage.records import Ending
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import atomic_job, plain_job
from tests.storage.making import register

REASON = "ordered twice"


@pytest.fixture
def finished():
    """The jobs whose end was announced."""
    ended = []

    def receive(*, task_result, **kwargs):
        ended.append(task_result.id)

    task_finished.connect(receive)
    yield ended
    task_finished.disconnect(receive)


def asked(bench: Bench):
    """Let another worker claim a job, and leave a request to cancel it."""
    bench.enqueue(leave, plain_job)
    names = [plain_job.module_path]
    worker = register(bench.storage)
    (claim,) = bench.storage.claim_many(worker, [plain_job.queue_name], names, 1)
    assert bench.storage.ask_to_cancel([claim.id], REASON) == [claim.id]
    return claim


def knowing(body):
    """Return `body`, run after the beat has told the run of the request."""

    def run(context):
        context._run.cancel_reason = REASON
        return body(context)

    return run


def raising(error):
    def body(context):
        raise error

    return body


# --- the run itself ----------------------------------------


def test_a_run_that_was_asked_is_told(bench: Bench):
    def body(context):
        before = context.is_cancelled
        context._run.cancel_reason = REASON
        return [before, context.is_cancelled]

    assert bench.run(body, plain_job).job.result == [False, True]


@pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "not atomic"])
def test_a_job_that_stops_when_asked_is_cancelled(bench: Bench, task):
    def body(context):
        context.stop_if_cancelled()
        leave(context)
        context._run.cancel_reason = REASON
        context.stop_if_cancelled()

    ran = bench.run(body, task)
    assert (ran.state, ran.job.reason) == ("cancelled", REASON)
    assert (ran.attempt.outcome, ran.attempt.charged) == ("cancelled", False)
    assert ran.effects == ([] if task is atomic_job else ["done"])


def test_a_run_that_lost_its_job_stops_as_such(bench: Bench):
    def body(context):
        context._run.abandoned = True
        with pytest.raises(LeaseLost):
            context.stop_if_cancelled()

    bench.run(body, plain_job)


def test_a_job_that_returns_all_the_same_has_succeeded(bench: Bench):
    ran = bench.run(knowing(leave))
    assert (ran.state, ran.effects) == ("succeeded", ["done"])


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ValueError(), "failed"), (Retry(after=5), "failed"), (Snooze(5), "snoozed")],
    ids=["fails", "retries", "snoozes"],
)
def test_a_job_that_would_run_again_is_cancelled(bench: Bench, finished, error, outcome):
    ran = bench.run(knowing(raising(error)), plain_job)
    assert (ran.state, ran.job.reason, ran.attempt.outcome) == ("cancelled", REASON, outcome)
    assert finished == [str(ran.id)]


def test_a_job_that_dies_of_itself_is_dead(bench: Bench):
    ran = bench.run(knowing(raising(GiveUp())), plain_job)
    assert (ran.state, ran.job.reason) == ("dead", "gave up")


def test_a_job_that_nobody_asked_says_itself_that_it_is_cancelled(bench: Bench):
    ran = bench.run(raising(Cancel()), plain_job)
    assert (ran.state, ran.job.reason) == ("cancelled", "by the task")


# --- whoever takes it back ----------------------------------------


def lose(bench: Bench, claim, **facts):
    death = Death(claim.worker, "killed", **facts)
    return recover(bench.storage, death, bench.environment.options)


@pytest.mark.parametrize(
    ("facts", "outcomes"),
    [
        ({"started": set()}, []),
        ({"stopped": True}, ["lost"]),
        ({}, ["lost"]),
        ({"timed_out": "it"}, ["timed_out"]),
    ],
    ids=["not started", "stopped", "killed", "timed out"],
)
def test_a_job_of_a_dead_worker_is_cancelled_if_somebody_asked(
    bench: Bench, finished, facts, outcomes
):
    claim = asked(bench)
    if "timed_out" in facts:
        facts = {"timed_out": {(claim.id, claim.fence)}}
    assert lose(bench, claim, **facts).is_settled
    ran = Ran(claim.id)
    assert (ran.state, ran.job.reason) == ("cancelled", REASON)
    assert [attempt.outcome for attempt in ran.attempts] == outcomes
    assert finished == [str(claim.id)]


def test_a_job_past_its_deadline_is_cancelled_if_somebody_asked(bench: Bench, finished):
    claim = asked(bench)
    late = bench.storage.overdue(5.0, now=timezone.now() + timedelta(hours=1))
    reap_overdue(bench.storage, late, bench.environment.options)
    ran = Ran(claim.id)
    assert (ran.state, ran.attempt.outcome) == ("cancelled", "timed_out")
    assert finished == [str(claim.id)]


def test_a_claim_whose_answer_was_lost_is_cancelled_if_somebody_asked(bench: Bench, finished):
    claim = asked(bench)
    release_uncharged(bench.storage, bench.storage.running_of([claim.worker]))
    assert (Ran(claim.id).state, Ran(claim.id).attempts) == ("cancelled", [])
    assert finished == [str(claim.id)]


def test_what_came_back_before_anybody_knew_is_cancelled_by_the_sweep(bench: Bench, finished):
    claim = asked(bench)
    back = Ending(id=claim.id, fence=claim.fence, worker=claim.worker, state="ready")
    bench.storage.end_many([back])
    assert obey_requests(bench.storage) == 1
    assert (Ran(claim.id).state, Ran(claim.id).job.reason) == ("cancelled", REASON)
    assert finished == [str(claim.id)]
    assert obey_requests(bench.storage) == 0


def test_a_job_that_was_claimed_again_meanwhile_is_asked_again(bench: Bench):
    claim = asked(bench)
    taken = bench.take_away(claim)
    assert obey_requests(bench.storage) == 0
    (held,) = bench.storage.running_of([taken.worker])
    assert held.cancel_reason == REASON
