"""What a job raises beside ordinary exceptions fails that attempt, and nothing else."""

import asyncio
import sys

import pytest

from tests.engine.bench import Bench, leave
from tests.engine.tasks import async_job, atomic_job, plain_job


class Unordinary(BaseException):
    """Neither an exit nor an exception."""


def exit_with(value):
    sys.exit(value)


RAISES = {
    "sys.exit(0)": (lambda: exit_with(0), "builtins.SystemExit"),
    "sys.exit(text)": (lambda: exit_with("x"), "builtins.SystemExit"),
    "KeyboardInterrupt": (KeyboardInterrupt, "builtins.KeyboardInterrupt"),
    "GeneratorExit": (GeneratorExit, "builtins.GeneratorExit"),
    "StopIteration": (StopIteration, "StopIteration"),
    "CancelledError": (asyncio.CancelledError, "asyncio.exceptions.CancelledError"),
    "TimeoutError": (TimeoutError, "builtins.TimeoutError"),
    "BaseException": (Unordinary, "tests.engine.test_base_exceptions.Unordinary"),
}


@pytest.fixture(params=RAISES.values(), ids=RAISES.keys())
def raised(request):
    return request.param


def raise_it(make):
    error = make()  # sys.exit() raises by itself
    raise error


@pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "not atomic"])
def test_it_fails_the_attempt_of_a_sync_job(bench: Bench, task, raised):
    make, name = raised

    def body(context):
        leave(context)
        raise_it(make)

    ran = bench.run(body, task)
    assert ran.effects == ([] if task is atomic_job else ["done"])
    assert (ran.state, ran.job.failures) == ("retrying", 1)
    assert (ran.attempt.outcome, ran.attempt.charged) == ("failed", True)
    assert ran.attempt.error_class.endswith(name)


def test_it_fails_the_attempt_of_an_async_job(bench: Bench, raised):
    make, name = raised

    async def body(context):
        await asyncio.sleep(0)
        raise_it(make)

    ran = bench.run(body, async_job)
    assert (ran.state, ran.job.failures) == ("retrying", 1)
    wanted = "builtins.RuntimeError" if name == "StopIteration" else name  # by PEP 479
    assert ran.attempt.error_class.endswith(wanted)


def test_an_exit_with_zero_is_no_success(bench: Bench):
    ran = bench.run(lambda context: sys.exit(0))
    assert ran.state == "retrying"
    assert ran.job.result is None


def test_a_retry_policy_decides_about_an_exit_too(bench: Bench):
    asked = []

    def policy(number, error):
        asked.append(type(error))
        return 7.0

    claim = bench.claim_one(lambda context: sys.exit(1))
    ended = bench.execute(claim, with_retry(policy))
    assert asked == [SystemExit]
    assert ended.failure.delay == 7.0


def with_retry(policy):
    from dataclasses import replace

    return replace(atomic_job, retry=policy)
