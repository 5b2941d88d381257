"""How often a job starts, and what a task may raise to decide about its own next state."""

from datetime import timedelta

import pytest
from django.db import connection

from jobqueue.exceptions import Cancel, GiveUp, InvalidArgument, Retry, Snooze
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.storage.making import run_sql


def counting(error=ValueError):
    starts = []

    def body(context):
        starts.append(context.attempt)
        raise error()

    return body, starts


def exhaust(bench: Bench, ran: Ran, most: int = 10, task=atomic_job) -> None:
    """Run a job until nothing of it can be claimed any more."""
    for _ in range(most):
        claims = bench.claim(task)
        if not claims:
            return
        bench.flush(bench.execute(claims[0], task))


@pytest.mark.parametrize("allowed", [1, 2, 3])
def test_a_job_that_fails_starts_exactly_max_attempts_times(bench: Bench, allowed: int):
    body, starts = counting()
    ran = Ran(bench.enqueue(body, atomic_job.using(max_attempts=allowed)))
    exhaust(bench, ran)
    assert starts == list(range(1, allowed + 1))
    assert (ran.state, ran.job.reason) == ("dead", "out of attempts")
    assert [a.number for a in ran.attempts] == starts
    assert [a.charged for a in ran.attempts] == [True] * allowed


def test_an_unlimited_job_goes_on(bench: Bench):
    body, starts = counting()
    ran = Ran(bench.enqueue(body, atomic_job.using(max_attempts="unlimited")))
    exhaust(bench, ran, most=12)
    assert len(starts) == 12
    assert ran.state == "retrying"


def test_the_last_attempt_may_still_succeed(bench: Bench):
    def body(context):
        if context.attempt < 2:
            raise ValueError
        leave(context)

    ran = Ran(bench.enqueue(body, atomic_job.using(max_attempts=2)))
    exhaust(bench, ran)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    assert [a.outcome for a in ran.attempts] == ["failed", "succeeded"]
    assert ran.job.error_class == ""


# --- Snooze ----------------------------------------


def test_a_snooze_uses_up_no_attempt(bench: Bench):
    body, starts = counting(lambda: Snooze(60))
    ran = Ran(bench.enqueue(body, atomic_job.using(max_attempts=1)))
    exhaust(bench, ran, most=3)
    assert starts == [1, 1, 1]
    assert (ran.state, ran.job.failures) == ("scheduled", 0)
    assert [a.outcome for a in ran.attempts] == ["snoozed"] * 3


def test_a_snooze_waits_as_long_as_it_says(bench: Bench):
    ran = bench.run(raising(Snooze(timedelta(hours=1))))
    waited = ran.job.run_at - ran.attempt.finished_at
    assert abs(waited - timedelta(hours=1)) < timedelta(seconds=1)
    assert ran.job.error_class == ""


def raising(error):
    def body(context):
        leave(context)
        raise error

    return body


@pytest.mark.parametrize(
    "error", [Snooze(1), Retry(), GiveUp(), Cancel()], ids=lambda error: type(error).__name__
)
def test_what_steers_a_job_rolls_its_writes_back(bench: Bench, error):
    assert bench.run(raising(error)).effects == []


@pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "not atomic"])
@pytest.mark.parametrize(
    ("error", "state", "outcome"),
    [
        (Snooze(1), "scheduled", "snoozed"),
        (Retry("later"), "retrying", "failed"),
        (GiveUp("no such card"), "dead", "failed"),
        (Cancel("not wanted"), "cancelled", "cancelled"),
    ],
    ids=["Snooze", "Retry", "GiveUp", "Cancel"],
)
def test_what_a_task_raises_decides_its_next_state(bench: Bench, task, error, state, outcome):
    ran = bench.run(raising(error), task)
    assert (ran.state, ran.attempt.outcome) == (state, outcome)


@pytest.mark.parametrize(
    ("error", "state"),
    [(Snooze(1), "scheduled"), (Retry(), "retrying"), (GiveUp(), "dead"), (Cancel(), "cancelled")],
    ids=["Snooze", "Retry", "GiveUp", "Cancel"],
)
def test_what_an_async_task_raises_decides_its_next_state(bench: Bench, error, state):
    async def body(context):
        raise error

    assert bench.run(body, async_job).state == state


# --- Retry, GiveUp, Cancel ----------------------------------------


def test_retry_after_says_when(bench: Bench):
    ran = bench.run(raising(Retry("busy", after=timedelta(minutes=10))))
    waited = ran.job.run_at - ran.attempt.finished_at
    assert abs(waited - timedelta(minutes=10)) < timedelta(seconds=1)
    assert (ran.attempt.charged, ran.attempt.error_message) == (True, "busy")


def test_retry_after_nothing_is_due_at_once(bench: Bench):
    ran = bench.run(raising(Retry(after=0)))
    assert ran.job.run_at <= ran.attempt.finished_at


def test_a_retry_out_of_attempts_is_a_dead_letter(bench: Bench):
    ran = bench.run(raising(Retry(after=1)), atomic_job.using(max_attempts=1))
    assert (ran.state, ran.job.reason) == ("dead", "out of attempts")


def test_giving_up_buries_the_job_whatever_attempts_are_left(bench: Bench):
    ran = bench.run(raising(GiveUp("no such card")), atomic_job.using(max_attempts="unlimited"))
    assert (ran.state, ran.job.reason) == ("dead", "gave up")
    assert ran.attempt.error_message == "no such card"


def test_a_cancelled_job_keeps_what_it_said(bench: Bench):
    ran = bench.run(raising(Cancel("not wanted")))
    assert (ran.state, ran.job.failures) == ("cancelled", 0)
    assert ran.attempt.error_message == "not wanted"


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), timedelta.max], ids=repr)
def test_a_delay_out_of_range_is_refused_where_it_is_written(delay):
    with pytest.raises(InvalidArgument):
        Snooze(delay)
    with pytest.raises(InvalidArgument):
        Retry(after=delay)


def test_an_error_out_of_range_in_a_job_is_a_failure_like_any_other(bench: Bench):
    def body(context):
        raise Snooze(-1)

    ran = bench.run(body)
    assert (ran.state, ran.attempt.outcome) == ("retrying", "failed")


# --- rows that cannot be run ----------------------------------------


@pytest.mark.parametrize(
    "arguments", ['{"args": 1}', "[]", '{"args": [], "kwargs": []}', '"x"', "null"]
)
def test_a_row_that_cannot_be_decoded_is_buried_with_a_clear_error(bench: Bench, arguments):
    claim = bench.claim_one(leave)._replace(arguments=arguments)
    bench.flush(bench.execute(claim))
    ran = Ran(claim.id)
    assert (ran.state, ran.job.reason) == ("dead", "undecodable row")
    assert "arguments" in ran.attempt.error_message


def test_one_corrupt_row_among_fifty_takes_none_of_them_along(bench: Bench):
    ids = [bench.enqueue(leave) for _ in range(50)]
    corrupt = '{"args": 1}' if connection.vendor == "postgresql" else '{"args": ['
    run_sql(
        connection,
        "UPDATE jobqueue_job SET arguments = %s WHERE id = %s",
        [corrupt, ids[25] if connection.vendor == "postgresql" else ids[25].hex],
    )
    bench.flush(*[bench.execute(claim) for claim in bench.claim(limit=50)])
    states = [Ran(each).state for each in ids]
    assert states[25] == "dead"
    assert states[:25] + states[26:] == ["succeeded"] * 49


def test_an_argument_that_the_function_no_longer_takes_fails_the_attempt(bench: Bench):
    """A row of an older version; its neighbours are none the worse."""
    claim = bench.claim_one(leave)
    stale = claim._replace(arguments=claim.arguments.replace("{}", '{"renamed": 1}'))
    bench.flush(bench.execute(stale))
    ran = Ran(claim.id)
    assert (ran.state, ran.attempt.error_class) == ("retrying", "builtins.TypeError")
    assert "renamed" in ran.attempt.error_message
