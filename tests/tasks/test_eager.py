"""Eager mode: the same values as in production, inside any test, with nothing left behind."""

import contextvars
import logging
import math
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import TestCase, override_settings

from jobqueue import Cancel, GiveUp, Retry, Snooze, task
from jobqueue.compat import TaskResultDoesNotExist, TaskResultStatus, task_finished, task_started
from jobqueue.conf import BACKEND_PATH
from jobqueue.exceptions import JobQueueError, StepError
from jobqueue.models import Job
from jobqueue.testing import EagerBackend, assert_enqueued, eager, enqueued
from tests.app.models import Effect
from tests.tasks.samples import add, echo, fail, fetch, names, report, send

pytestmark = pytest.mark.django_db

logger = logging.getLogger("shop.import")
request_user = contextvars.ContextVar("request_user", default="nobody")
seen = []


@task
def write(label, fails=False):
    Effect.objects.create(job_id="eager", label=label)
    if fails:
        raise ValueError("after the write")


@task
def chain(n):
    if n:
        chain.enqueue(n - 1)
    return n


@task
def who():
    return request_user.get()


@task(takes_context=True)
def tell(context, total, fails=False):
    for done in range(1, total + 1):
        context.progress(done, total, "counting")
        logger.warning("at %d", done)
    if fails:
        raise ValueError("at the end")


@task(takes_context=True)
async def tell_async(context):
    context.progress(0.5)
    context.log.warning("half of something")


@task
def steer(name):
    steering = {
        "snooze": Snooze(5),
        "retry": Retry("again", after=5),
        "give up": GiveUp("no use"),
        "cancel": Cancel("asked"),
    }
    raise steering[name]


@task(takes_context=True)
def look(context):
    return {
        "id": str(context.job_id),
        "key": context.idempotency_key,
        "attempt": context.attempt,
        "path": context.task_result.task.module_path,
        "cancelled": context.is_cancelled,
    }


@task(takes_context=True, atomic=False)
def work_in_steps(context, fails=False):
    first = context.step("charge", lambda amount: (amount, {1: "x"}), 5)
    again = context.step("charge", lambda amount: "never run", 5)
    with context.atomic():
        Effect.objects.create(job_id="eager", label="committed")
        context.commit({"first": first, "again": again})
    if fails:
        raise RuntimeError("after the commit")
    return "not the result"


@task(takes_context=True)
def misuse(context):
    context.step("x", lambda: 1, atomic=True)


@task
def return_set():
    return {1}


@task
def interrupt():
    raise KeyboardInterrupt


def middleware(call_next):
    def run(context):
        seen.append(str(context.job_id))
        return call_next(context)

    return run


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "same"),
    [
        ({1: "a"}, {"1": "a"}),
        ((1, 2), [1, 2]),
        ({"a": (1,)}, {"a": [1]}),
        (b"x", "x"),
        (None, None),
    ],
)
def test_arguments_and_results_are_what_production_makes_of_them(value, same):
    stored = echo.enqueue(value)
    with eager():
        result = echo.enqueue(value)
    assert result.args == stored.args == [same]
    assert result.return_value == same


@pytest.mark.parametrize(("value", "error"), [({1, 2}, TypeError), (math.nan, ValueError)])
def test_what_production_refuses_eager_mode_refuses(value, error):
    with eager() as jobs, pytest.raises(error):
        echo.enqueue(value)
    assert jobs == []


def test_keywords_may_have_any_name():
    with eager():
        result = names.enqueue(task=1, self=2, args=3, queue=4, job=5)
    assert result.return_value == [1, 5, 2, 3, 4, None, None]


def test_a_result_that_json_cannot_hold_fails_the_job():
    with eager():
        result = return_set.enqueue()
    assert result.errors[0].exception_class_path.endswith("ResultNotSerializable")


# --- running -------------------------------------------------------------------------------------


def test_a_job_has_run_when_enqueue_returns_and_no_row_was_written():
    with eager() as jobs:
        result = add.enqueue(1, b=2)
        assert result.status == TaskResultStatus.SUCCESSFUL
        assert result.return_value == 3
        assert add.get_result(result.id) is result
        result.refresh()
        assert result.wait().attempts == 1
        with pytest.raises(TaskResultDoesNotExist):
            add.get_result("x")
    assert jobs == [result]
    assert Job.objects.count() == 0
    assert add.enqueue(1).job_state == "ready"  # the real backend is back


def test_async_tasks_and_tasks_with_a_context_run():
    with eager():
        assert fetch.enqueue("u").return_value == "U"
        assert send.enqueue("a@b").return_value == "hello a@b"
        result = look.enqueue()
    assert result.return_value == {
        "id": result.id,
        "key": result.id,
        "attempt": 1,
        "path": f"{__name__}.look",
        "cancelled": False,
    }


def test_jobs_enqueued_by_jobs_run_too():
    with eager() as jobs:
        chain.enqueue(3)
    assert sorted(job.return_value for job in jobs) == [0, 1, 2, 3]


def test_many_jobs_run_in_order():
    with eager() as jobs:
        add.enqueue_many([add.bind(n) for n in range(4)])
    assert [job.return_value for job in jobs] == [0, 1, 2, 3]


def test_the_callers_context_variables_do_not_reach_the_job():
    token = request_user.set("ada")
    try:
        with eager():
            assert who.enqueue().return_value == "nobody"
    finally:
        request_user.reset(token)


def test_an_atomic_jobs_writes_go_when_it_fails_and_the_callers_stay():
    with eager(), transaction.atomic():
        Effect.objects.create(job_id="caller")
        assert write.enqueue("kept").return_value is None
        assert write.enqueue("lost", fails=True).job_state == "retrying"
    assert {e.label for e in Effect.objects.all()} == {"", "kept"}


def test_a_job_of_the_future_is_remembered_and_not_run():
    with eager() as jobs:
        result = fail.using(run_after=timedelta(hours=1)).enqueue()
    assert jobs == [result]
    assert (result.status, result.job_state) == (TaskResultStatus.READY, "scheduled")
    assert result.errors == []


@pytest.mark.parametrize(
    ("name", "state", "attempts", "errors"),
    [
        ("snooze", "scheduled", 0, 0),
        ("retry", "retrying", 1, 1),
        ("give up", "dead", 1, 1),
        ("cancel", "cancelled", 0, 0),
    ],
)
def test_a_job_that_steers_itself_ends_as_production_would_have_it(name, state, attempts, errors):
    with eager():
        result = steer.enqueue(name)
    assert result.job_state == state
    assert (result.attempts, len(result.errors)) == (attempts, errors)


def test_a_failure_is_in_the_result_or_reaches_the_caller_if_asked():
    with eager():
        result = fail.using(max_attempts=1).enqueue("boom")
        assert fail.enqueue().job_state == "retrying"
    assert (result.status, result.job_state) == (TaskResultStatus.FAILED, "dead")
    assert result.errors[0].exception_class is ValueError
    assert "boom" in result.errors[0].traceback
    with eager(raise_errors=True) as jobs:
        with pytest.raises(ValueError, match="boom"):
            fail.enqueue("boom")
        assert steer.enqueue("snooze").job_state == "scheduled"
    assert [job.job_state for job in jobs] == ["retrying", "scheduled"]


def test_an_interrupt_from_the_keyboard_is_the_developers():
    with eager(), pytest.raises(KeyboardInterrupt):
        interrupt.enqueue()


def test_steps_and_commit_work():
    with eager():
        for fails in (False, True):
            result = work_in_steps.enqueue(fails=fails)
            assert result.return_value == {"first": [5, {"1": "x"}], "again": [5, {"1": "x"}]}
    assert Effect.objects.count() == 2


def test_a_step_that_production_refuses_is_refused():
    with eager(raise_errors=True), pytest.raises(StepError):
        misuse.enqueue()


def test_middleware_runs_around_each_job():
    seen.clear()
    path = f"{__name__}.middleware"
    tasks = {"default": {"BACKEND": BACKEND_PATH, "OPTIONS": {"MIDDLEWARE": [path]}}}
    with override_settings(TASKS=tasks), eager():
        result = add.enqueue(1)
    assert seen == [result.id]


def test_the_signals_are_sent():
    heard = []

    def hear(signal, task_result, **kwargs):
        heard.append((signal, task_result.status))

    for signal in (task_started, task_finished):
        signal.connect(hear)
    try:
        with eager():
            add.enqueue(1)
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(hear)
    assert [status for _, status in heard] == ["RUNNING", "SUCCESSFUL"]


class InATestCase(TestCase):
    """No connection is closed: the test's own transaction goes on."""

    def test_the_connection_lives(self):
        Effect.objects.create(job_id="before")
        with eager():
            write.enqueue("inside")
            fetch.enqueue("u")
        assert connection.in_atomic_block
        assert Effect.objects.count() == 2

    def test_other_tests_leave_nothing(self):
        assert Effect.objects.count() == 0


# --- assertions ----------------------------------------------------------------------------------


def test_what_was_enqueued_under_the_real_backend():
    one = send.using(tags=["order:1", "vip"]).enqueue("a@b", subject=("x",))
    two = send.enqueue("c@d")
    three = add.enqueue(1)
    assert ids(enqueued(send)) == ids([one, two])  # within a millisecond they have no order
    assert ids(enqueued()) == ids([one, two, three])
    assert enqueued(report) == []
    assert assert_enqueued(send, args=("a@b",), kwargs={"subject": ["x"]}, count=1) == [one]
    assert assert_enqueued(send, tags=["vip"]) == [one]
    assert ids(assert_enqueued(send, queue_name="mail", priority=10)) == ids([one, two])
    assert assert_enqueued(report, count=0) == []


def ids(results):
    return sorted(result.id for result in results)


def test_what_was_enqueued_eagerly():
    with eager():
        result = send.enqueue("a@b")
        assert enqueued() == [result]
        assert assert_enqueued(send, args=["a@b"]) == [result]


def test_a_failed_assertion_says_what_was_enqueued():
    send.enqueue("a@b")
    with pytest.raises(AssertionError, match=r"found 0.*'a@b'.*'mail'"):
        assert_enqueued(send, args=["c@d"])
    with pytest.raises(AssertionError, match="2 jobs"):
        assert_enqueued(send, count=2)


def test_the_backend_can_be_named_in_the_settings():
    tasks = {"default": {"BACKEND": "jobqueue.testing.EagerBackend"}}
    before = list(EagerBackend.results)
    try:
        with override_settings(TASKS=tasks):
            result = echo.enqueue(1)
            assert enqueued(echo) == [result]
            assert result.return_value == 1
    finally:
        EagerBackend.results[:] = before
    assert issubclass(JobQueueError, Exception)


@pytest.mark.parametrize("fails", [False, True])
def test_progress_and_log_lines_of_an_eager_job_are_remembered(fails):
    with eager() as jobs:
        tell.enqueue(3, fails)
        echo.enqueue("says nothing")
    told, silent = jobs
    assert str(told.progress) == "3 of 3 (100 %), counting"
    assert told.progress.fraction == 1.0
    assert [(line.number, line.message) for line in told.log_lines] == [
        (1, "at 1"),
        (2, "at 2"),
        (3, "at 3"),
    ]
    assert told.log_lines[0].level_name == "WARNING"
    assert (silent.progress, silent.log_lines) == (None, [])


def test_an_async_eager_job_reports_too():
    with eager() as jobs:
        tell_async.enqueue()
    assert str(jobs[0].progress) == "0.50"
    assert [line.message for line in jobs[0].log_lines] == ["half of something"]


def test_records_outside_of_eager_jobs_are_made_as_before():
    before = logging.getLogRecordFactory()
    with eager():
        tell.enqueue(1)
    assert logging.getLogRecordFactory() is before
