"""Return values: stored as JSON, refused where JSON cannot hold them, falsy ones kept apart."""

from datetime import timedelta

import pytest

from jobqueue import task
from jobqueue.models import Job
from tests.app.models import Effect
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import async_job, atomic_job, plain_job

JOBS = pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "not atomic"])


@JOBS
@pytest.mark.parametrize("value", [0, "", [], None, False, {}, 0.0, "0", "null", "12"], ids=repr)
def test_a_falsy_result_comes_back_as_it_was(bench: Bench, task, value):
    ran = bench.run(lambda context: value, task)
    assert ran.state == "succeeded"
    stored = task.get_result(str(ran.id)).return_value
    assert (stored, type(stored)) == (value, type(value))


@pytest.mark.parametrize("value", [0, "", [], None, False], ids=repr)
def test_a_falsy_result_of_an_async_job_comes_back_as_it_was(bench: Bench, value):
    async def body(context):
        return value

    ran = bench.run(body, async_job)
    stored = async_job.get_result(str(ran.id)).return_value
    assert (stored, type(stored)) == (value, type(value))


def test_a_result_that_an_effect_goes_with_comes_back_as_it_was(bench: Bench):
    ran = bench.run(lambda context: leave(context) or "")
    assert ran.effects == ["done"]
    assert atomic_job.get_result(str(ran.id)).return_value == ""


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def referring_to_itself():
    value = []
    value.append(value)
    return value


@task
async def asynchronous():
    """What a task calls and forgets to await."""


UNSTORABLE = {
    "an object": object,
    "a generator": lambda: (n for n in range(3)),
    "a queryset": Effect.objects.all,
    "a model instance": Effect,
    "a list in itself": referring_to_itself,
    "a deep list": lambda: nested(50_000),
    "a large text": lambda: "x" * 20_000_000,
    "a coroutine nobody awaited": lambda: asynchronous.func(),
    "NaN": lambda: float("nan"),
    "infinity in a dict": lambda: {"rate": float("inf")},
    "a set": lambda: {1},
    "NUL": lambda: "a\x00b",
    "a lone surrogate": lambda: "\ud800",
    "a huge integer": lambda: 10**10_000,
    "two keys that become one": lambda: {1: "a", "1": "b"},
}


@pytest.fixture(params=UNSTORABLE.values(), ids=UNSTORABLE.keys())
def unstorable(request):
    return request.param


def assert_refused(ran):
    assert (ran.state, ran.job.failures) == ("retrying", 1)
    assert ran.job.result is None
    assert ran.attempt.error_class == "jobqueue.exceptions.ResultNotSerializable"


def test_an_unstorable_result_fails_the_attempt_with_its_effect(bench: Bench, unstorable):
    ran = bench.run(lambda context: leave(context) or unstorable())
    assert_refused(ran)
    assert ran.effects == []


FOR_OTHER_TASKS = pytest.mark.parametrize(
    "kind", ["an object", "NaN", "a coroutine nobody awaited", "a large text"]
)


@FOR_OTHER_TASKS
def test_an_unstorable_result_of_a_job_that_is_not_atomic_fails_the_attempt(bench: Bench, kind):
    assert_refused(bench.run(lambda context: UNSTORABLE[kind](), plain_job))


@FOR_OTHER_TASKS
def test_an_unstorable_result_of_an_async_job_fails_the_attempt(bench: Bench, kind):
    async def body(context):
        return UNSTORABLE[kind]()

    assert_refused(bench.run(body, async_job))


def test_an_unstorable_result_is_not_retried_endlessly(bench: Bench):
    ran = bench.run(lambda context: object(), atomic_job.using(max_attempts=2))
    bench.again(ran)
    assert (ran.state, ran.job.reason) == ("dead", "out of attempts")


def test_a_result_that_raises_while_it_is_read_is_the_jobs_own_error(bench: Bench):
    class Breaks(dict):
        def items(self):
            raise OSError("gone")

    ran = bench.run(lambda context: leave(context) or Breaks(a=1))
    assert ran.effects == []
    assert ran.attempt.error_class == "builtins.OSError"


@pytest.fixture
def options(settings):
    """Sets options of the alias that jobs are enqueued under."""

    def put(**options) -> None:
        alias = settings.TASKS["default"]
        settings.TASKS = {"default": {**alias, "OPTIONS": {**alias["OPTIONS"], **options}}}

    return put


def test_a_committed_result_is_limited_too(bench: Bench, options):
    def body(context):
        with context.atomic():
            context.commit("123456789")

    options(MAX_RESULT_BYTES=10)
    assert bench.run(body, plain_job).state == "retrying"


def test_the_limits_are_those_of_the_jobs_own_alias_not_of_its_worker(make_bench, options):
    bench = make_bench(max_result_bytes=10, max_traceback_bytes=32_768)
    options(MAX_RESULT_BYTES=11, MAX_TRACEBACK_BYTES=300, RETRY={"base": 3_000, "jitter": 0})
    assert bench.run(lambda context: "123456789").state == "succeeded"
    ran = bench.run(lambda context: "1234567890")
    assert_refused(ran)
    assert len(ran.attempt.traceback.encode()) <= 300
    assert ran.job.run_at - ran.attempt.finished_at == timedelta(seconds=3_000)


def test_a_job_whose_alias_is_gone_goes_by_its_workers_options(make_bench):
    bench = make_bench(max_result_bytes=10)
    job = bench.enqueue(lambda context: "123456789")
    Job.objects.filter(pk=job).update(backend="gone")
    assert_refused(bench.again(Ran(job)))


def test_a_result_at_the_limit_is_stored_and_one_byte_more_is_not(bench: Bench, options):
    options(MAX_RESULT_BYTES=10)
    assert bench.run(lambda context: "12345678").state == "succeeded"
    assert_refused(bench.run(lambda context: "123456789"))
