"""Middleware wraps each attempt: outermost first, sync and async, inside the job's transaction."""

import threading

import pytest
from asgiref.sync import sync_to_async

from jobqueue.engine.middleware import Middleware
from tests.engine import middlewares
from tests.engine.bench import Bench, leave
from tests.engine.tasks import async_job, plain_job

HERE = "tests.engine.middlewares"


@pytest.fixture
def wrapped(bench: Bench):
    """The bench with the named middleware."""
    middlewares.trace.clear()

    def wrap(*names: str) -> Bench:
        bench.middleware = Middleware(tuple(f"{HERE}.{name}" for name in names))
        return bench

    return wrap


def body(context):
    middlewares.trace.append("job")
    return 1


async def async_body(context):
    middlewares.trace.append("job")
    return 1


def test_the_first_named_is_the_outermost(wrapped):
    ran = wrapped("outer", "inner").run(body)
    assert ran.job.result == 1
    assert middlewares.trace == ["outer in", "inner in", "job", "inner out", "outer out"]


def test_sync_middleware_wraps_an_async_job(wrapped):
    ran = wrapped("outer", "inner").run(async_body, async_job)
    assert ran.job.result == 1
    assert middlewares.trace == ["outer in", "inner in", "job", "inner out", "outer out"]


def test_sync_and_async_middleware_may_be_mixed(wrapped):
    bench = wrapped("outer", "both_ways", "inner")
    assert bench.run(async_body, async_job).job.result == 1
    assert middlewares.trace == [
        "outer in", "async in", "inner in", "job", "inner out", "async out", "outer out",
    ]  # fmt: skip


def test_async_capable_middleware_wraps_a_sync_job(wrapped):
    assert wrapped("both_ways").run(body).job.result == 1
    assert middlewares.trace == ["inner in", "job", "inner out"]


@pytest.mark.parametrize("task", [plain_job, async_job], ids=["sync", "async"])
def test_middleware_may_change_the_result(wrapped, task):
    chosen = async_body if task is async_job else body
    assert wrapped("doubling").run(chosen, task).job.result == 2


def test_middleware_may_keep_the_job_from_running(wrapped):
    assert wrapped("skipping").run(body).job.result == "skipped"
    assert middlewares.trace == []


def test_middleware_that_raises_fails_the_attempt_and_rolls_it_back(wrapped):
    ran = wrapped("failing").run(leave)
    assert (ran.state, ran.effects) == ("retrying", [])
    assert ran.attempt.error_message == "in the middleware"


def test_middleware_that_raises_fails_an_async_attempt(wrapped):
    ran = wrapped("failing").run(async_body, async_job)
    assert (ran.state, ran.attempt.error_message) == ("retrying", "in the middleware")


def test_the_writes_of_middleware_belong_to_the_jobs_transaction(wrapped):
    def fail(context):
        leave(context)
        raise ValueError

    bench = wrapped("writing")
    assert bench.run(fail).effects == []
    assert bench.run(leave).effects == ["middleware", "done"]


def test_every_attempt_is_wrapped(wrapped):
    def fail_once(context):
        if context.attempt == 1:
            raise ValueError

    bench = wrapped("outer")
    ran = bench.run(fail_once)
    bench.again(ran)
    assert middlewares.trace == ["outer in", "outer in", "outer out"]


def test_an_error_of_the_job_passes_through_middleware(wrapped):
    def fail(context):
        raise ValueError("the job's own")

    ran = wrapped("outer", "inner").run(fail)
    assert ran.attempt.error_message == "the job's own"
    assert middlewares.trace == ["outer in", "inner in"]


def test_sync_middleware_and_the_sync_parts_of_an_async_job_share_one_thread(wrapped):
    """Whose connections are closed with the job; those of any other thread would stay open."""
    threads = []

    def write(context):
        threads.append(threading.get_ident())
        leave(context)

    async def write_twice(context):
        await sync_to_async(write)(context)
        await sync_to_async(write)(context)

    ran = wrapped("threaded").run(write_twice, async_job)
    assert ran.effects == ["done", "done"]
    assert middlewares.trace == [str(thread) for thread in set(threads)]
