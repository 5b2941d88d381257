"""Interrupting runs: an exception in the job's code, never in its finish, nor in the next job."""

import asyncio
import sys
import threading
import time

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from jobqueue.engine.interrupts import arm, disarm, interrupt
from jobqueue.engine.run_state import RunState, Stop
from jobqueue.exceptions import Cancel, GiveUp, Retry, Snooze, TimeLimitExceeded
from tests.engine import faults
from tests.engine.bench import Bench, leave
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.storage.making import run_sql

ENDLESS = {
    "postgresql": "SELECT pg_sleep(3600)",
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT sum(i) FROM n",
}
PATIENCE = 60.0
once = atomic_job.using(max_attempts=1)


def stop(context, why=Stop.TIME_LIMIT) -> threading.Thread:
    """Interrupt a run from another thread in a moment, as the watchdog does."""
    thread = threading.Timer(0.01, interrupt, (context._run, why))
    thread.start()
    return thread


def go_on() -> None:
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        pass


def overstay(context) -> None:
    """Run until interrupted."""
    leave(context)
    stop(context)
    go_on()


def overstay_by(last_words):
    """Return a body that runs until it is interrupted, catches that, and ends by `last_words`."""

    def body(context):
        try:
            overstay(context)
        except TimeLimitExceeded:
            return last_words(context)

    return body


# --- threads ----------------------------------------


def test_an_atomic_job_that_runs_for_too_long_times_out_and_leaves_nothing(bench: Bench):
    ran = bench.run(overstay)
    assert (ran.state, ran.effects) == ("retrying", [])
    attempt = ran.attempt
    assert (attempt.outcome, attempt.charged) == ("timed_out", True)
    assert attempt.error_class == "jobqueue.exceptions.TimeLimitExceeded"
    assert "in go_on" in attempt.traceback
    assert bench.run(leave).effects == ["done"]


@pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "not atomic"])
def test_a_loop_that_swallows_every_exception_ends(bench: Bench, task):
    def body(context):
        stop(context)
        while True:
            try:
                go_on()
            except Exception:
                pass

    assert bench.run(body, task).attempt.outcome == "timed_out"


def test_an_atomic_job_that_catches_its_time_out_commits_nothing(bench: Bench):
    ran = bench.run(overstay_by(lambda context: "caught"))
    assert (ran.state, ran.effects, ran.attempt.outcome) == ("retrying", [], "timed_out")
    assert bench.run(leave).effects == ["done"]


def test_a_job_without_a_transaction_may_leave_something_behind(bench: Bench):
    def last_words(context):
        with context.atomic():
            leave(context, "partial")
            context.commit("partial")

    ran = bench.run(overstay_by(last_words), plain_job)
    assert (ran.state, ran.job.result, ran.effects) == ("succeeded", "partial", ["done", "partial"])


def raising(error):
    def last_words(context):
        raise error

    return last_words


@pytest.mark.parametrize(
    ("error", "state", "outcome"),
    [
        (ValueError("while cleaning up"), "retrying", "timed_out"),
        (Retry(after=60), "retrying", "failed"),
        (Snooze(60), "scheduled", "snoozed"),
        (GiveUp(), "dead", "failed"),
        (Cancel(), "cancelled", "cancelled"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
@pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "not atomic"])
def test_what_a_task_makes_of_its_time_out(bench: Bench, task, error, state, outcome):
    ran = bench.run(overstay_by(raising(error)), task)
    assert (ran.state, ran.attempt.outcome) == (state, outcome)


def test_a_statement_in_the_database_is_cancelled(bench: Bench):
    def body(context):
        leave(context)
        stop(context)
        run_sql(connection, ENDLESS[connection.vendor])

    ran = bench.run(body)
    assert (ran.attempt.outcome, ran.effects) == ("timed_out", [])
    assert bench.run(leave).effects == ["done"]


def test_an_abandoned_job_ends_and_nothing_is_written_about_it(bench: Bench):
    taken = []

    def body(context):
        bench.take_away(taken[0])
        stop(context, Stop.ABANDONED)
        go_on()

    taken.append(bench.claim_one(body, plain_job))
    ended = bench.execute(taken[0], plain_job)
    assert (ended.is_success, ended.failure) == (False, None)


def test_a_request_to_cancel_interrupts_no_thread(bench: Bench):
    def body(context):
        stop(context, Stop.ASKED).join()
        return "on its own terms"

    assert bench.run(body, plain_job).job.result == "on its own terms"


# --- where it may not land ----------------------------------------


@pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "block"])
def test_a_finish_that_has_begun_is_not_interrupted(bench: Bench, task):
    sent = []

    def body(context):
        runs.append(context)
        if task is plain_job:
            with context.atomic():
                leave(context)
                context.commit()
        else:
            leave(context)

    def late(storage, proceed):
        answer = proceed()
        sent.append(interrupt(runs[0]._run, Stop.TIME_LIMIT))
        return answer

    runs: list = []
    with faults.at("finish_one", late):
        ran = bench.run(body, task)
    assert (ran.state, ran.effects, sent) == ("succeeded", ["done"], [False])


def test_a_block_without_commit_is_left_whole_and_the_job_interrupted_after_it(bench: Bench):
    def body(context):
        with context.atomic():
            leave(context)
            sending = stop(context)
        sending.join()
        go_on()

    ran = bench.run(body, plain_job)
    assert ran.attempt.outcome == "timed_out"
    assert ran.effects in (["done"], [])  # sent in the block, or just after it


@pytest.fixture
def fine_grained():
    """Let threads alternate as often as they can, so that any two lines may be interleaved."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("fine_grained")
def test_nothing_lands_after_a_run_was_disarmed(bench: Bench):
    """Whenever it was sent: it lands in the run, or never."""
    run = RunState(bench.claim_one(leave), bench.environment, in_atomic_task=False)
    landed, over = 0, threading.Event()

    def send_all_the_time() -> None:
        while not over.is_set():
            interrupt(run, Stop.TIME_LIMIT)

    sender = threading.Thread(target=send_all_the_time)
    sender.start()
    give_up = time.monotonic() + PATIENCE
    while landed < 20 and time.monotonic() < give_up:
        run.sent = run.stopped = None
        try:
            arm(run)
            for _ in range(10 + 40 * (landed % 3)):
                int("7")
            disarm(run)
        except TimeLimitExceeded:
            landed += 1
        for _ in range(50):
            int("7")
    over.set()
    sender.join()
    assert landed == 20


@pytest.mark.usefixtures("fine_grained")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_jobs_interrupted_at_any_moment_commit_all_or_nothing_and_harm_no_other(bench: Bench):
    """Some land in a destructor and are lost (hence the filter); nothing is committed even then."""
    outcomes = set()
    for n in range(25):

        def body(context, n=n):
            threading.Timer(n * 0.0005, interrupt, (context._run, Stop.TIME_LIMIT)).start()
            for _ in range(4):
                leave(context)

        ran = bench.run(body, once)
        assert ran.effects == (["done"] * 4 if ran.state == "succeeded" else [])
        outcomes.add(ran.attempt.outcome)
        assert bench.run(leave, once).effects == ["done"]
    assert "timed_out" in outcomes
    assert outcomes <= {"timed_out", "succeeded"}


# --- coroutines ----------------------------------------


async def sleep_until_stopped(context, why=Stop.TIME_LIMIT):
    interrupt(context._run, why)
    await asyncio.sleep(PATIENCE)


@pytest.mark.parametrize(
    ("why", "state", "outcome"),
    [(Stop.TIME_LIMIT, "retrying", "timed_out"), (Stop.ASKED, "cancelled", "cancelled")],
)
def test_a_coroutine_is_cancelled_for_what_stops_it(bench: Bench, why, state, outcome):
    async def body(context):
        context._run.cancel_reason = "typo" if why is Stop.ASKED else None
        await sleep_until_stopped(context, why)

    ran = bench.run(body, async_job)
    assert (ran.state, ran.attempt.outcome) == (state, outcome)
    assert ran.job.reason == ("typo" if why is Stop.ASKED else "")
    assert ran.attempt.charged == (why is Stop.TIME_LIMIT)


def test_an_abandoned_coroutine_ends_and_nothing_is_written_about_it(bench: Bench):
    async def body(context):
        await sleep_until_stopped(context, Stop.ABANDONED)

    ended = bench.execute(bench.claim_one(body, async_job), async_job)
    assert (ended.is_success, ended.failure) == (False, None)


def test_a_coroutine_may_catch_its_cancellation_and_leave_something_behind(bench: Bench):
    async def body(context):
        try:
            await sleep_until_stopped(context)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()
        await sync_to_async(leave)(context, "partial")
        return "partial"

    ran = bench.run(body, async_job)
    assert (ran.state, ran.job.result, ran.effects) == ("succeeded", "partial", ["partial"])


def test_a_greater_reason_to_stop_overrules(bench: Bench):
    async def body(context):
        context._run.cancel_reason = "typo"
        try:
            await sleep_until_stopped(context, Stop.ASKED)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()
        await sleep_until_stopped(context, Stop.TIME_LIMIT)

    ran = bench.run(body, async_job)
    assert (ran.state, ran.attempt.outcome) == ("cancelled", "timed_out")
