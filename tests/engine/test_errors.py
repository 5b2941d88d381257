"""Errors are stored as bounded text, whatever they are, and never rebuilt."""

import threading
from dataclasses import dataclass, replace

import pytest
from django.db import connection

from jobqueue import Snooze
from tests.app.models import Effect
from tests.engine.bench import Bench, leave
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.storage.making import run_sql


class TwoArguments(Exception):
    """Cannot be rebuilt from its args."""

    def __init__(self, order, reason):
        super().__init__(f"{order}: {reason}")


class HoldsALock(Exception):
    """Cannot be pickled."""

    def __init__(self):
        super().__init__("locked")
        self.lock = threading.Lock()


class Mute(Exception):
    """Cannot be turned into text."""

    def __str__(self):
        raise RuntimeError("no text")


class Exits(Exception):
    def __str__(self):
        raise SystemExit(1)


class Nameless(Exception):
    __module__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Frozen(Exception):
    """Refuses every assignment, also that of a traceback."""

    order: int = 1


class Listing(Exception):
    """Has an attribute that groups have, too."""

    def __init__(self, exceptions):
        super().__init__("listing")
        self.exceptions = exceptions


class Secretive(Exception):
    """Will not say what caused it."""

    @property
    def __cause__(self):
        raise RuntimeError("no cause")


class Nap(Snooze):
    """Says that it snoozes, and not for how long."""

    def __init__(self):
        Exception.__init__(self, "nap")


def frozen_in_a_chain():
    error = ValueError("outer")
    error.__context__ = Frozen()
    return error


def local_class():
    class Local(Exception):
        pass

    return Local("local")


def containing_itself():
    error = ValueError()
    error.args = (error,)
    return error


def chained():
    try:
        raise HoldsALock
    except HoldsALock as cause:
        error = TwoArguments(1, "chained")
        error.__cause__ = cause
        return error


def in_a_circle():
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    return one


AWKWARD = {
    "two required arguments": lambda: TwoArguments(1, "refused"),
    "a lock": HoldsALock,
    "bytes": lambda: ValueError(b"\xff\x00"),
    "a model instance": lambda: ValueError(Effect(label="x")),
    "itself": containing_itself,
    "a group": lambda: ExceptionGroup("several", [HoldsALock(), ValueError("x")]),
    "a chain": chained,
    "a circle": in_a_circle,
    "a local class": local_class,
    "no text": Mute,
    "an exit for a text": Exits,
    "no module": lambda: Nameless("x"),
    "NUL and a lone surrogate": lambda: ValueError("a\x00b\ud800c"),
    "not a string": lambda: ValueError(object()),
    "frozen": Frozen,
    "frozen in a chain": frozen_in_a_chain,
    "a list that is none": lambda: Listing(None),
    "a list of text": lambda: Listing(["name is missing"]),
    "a secret cause": Secretive,
    "a steering without its value": Nap,
}


@pytest.fixture(params=AWKWARD.values(), ids=AWKWARD.keys())
def awkward(request):
    return request.param


def assert_recorded(ran):
    assert (ran.state, ran.job.failures) == ("retrying", 1)
    assert ran.attempt.outcome == "failed"
    assert ran.attempt.error_class
    assert ran.attempt.traceback


def test_an_awkward_exception_is_an_attempt_like_any_other(bench: Bench, awkward):
    def body(context):
        leave(context)
        raise awkward()

    ran = bench.run(body)
    assert_recorded(ran)
    assert ran.effects == []
    assert bench.run(leave).effects == ["done"]


@pytest.mark.parametrize(
    "kind",
    [
        "a lock",
        "a group",
        "no text",
        "an exit for a text",
        "frozen",
        "a list that is none",
        "a steering without its value",
    ],
)
def test_an_awkward_exception_of_an_async_job_is_an_attempt_like_any_other(bench: Bench, kind):
    async def body(context):
        raise AWKWARD[kind]()

    assert_recorded(bench.run(body, async_job))


# --- size ----------------------------------------


def test_a_message_of_fifty_megabytes_is_cut_to_head_and_tail(bench: Bench):
    def body(context):
        raise ValueError("begin" + "x" * 50_000_000 + "end")

    ran = bench.run(body)
    message, traceback = ran.attempt.error_message, ran.attempt.traceback
    assert len(message.encode()) <= 4 * 1024
    assert message.startswith("begin")
    assert message.endswith("end")
    assert len(traceback.encode()) <= bench.environment.options.max_traceback_bytes
    assert len(ran.job.error_message.encode()) <= 4 * 1024


def test_a_message_of_wide_characters_is_cut_by_its_bytes(bench: Bench):
    def body(context):
        raise ValueError("€" * 100_000 + "\x00" * 100_000)

    ran = bench.run(body)
    assert len(ran.attempt.error_message.encode()) <= 4 * 1024
    assert len(ran.attempt.traceback.encode()) <= bench.environment.options.max_traceback_bytes


def test_a_runaway_recursion_is_recorded_with_its_innermost_frames(bench: Bench):
    def deeper(n):
        return deeper(n + 1) + 1

    ran = bench.run(lambda context: deeper(0))
    assert_recorded(ran)
    assert ran.attempt.error_class == "builtins.RecursionError"
    assert "deeper" in ran.attempt.traceback
    assert len(ran.attempt.traceback.encode()) <= bench.environment.options.max_traceback_bytes


def test_an_error_that_echoes_a_large_statement_is_recorded(bench: Bench):
    def body(context):
        rows = ", ".join(f"({n}, 'x', '', now())" for n in [*range(5_000), 1])
        run_sql(connection, f"INSERT INTO app_effect (id, job_id, label, created) VALUES {rows}")

    ran = bench.run(body)
    assert_recorded(ran)


# --- what is kept in memory ----------------------------------------


def test_the_frames_of_a_recorded_error_are_let_go(bench: Bench):
    errors = []

    def body(context):
        large = bytearray(1_000)
        errors.append(ValueError(len(large)))
        raise errors[0]

    bench.run(body, plain_job)
    assert errors[0].__traceback__ is None


# --- the retry policy ----------------------------------------


def raising(error):
    def policy(number, exception):
        raise error

    return policy


@pytest.mark.parametrize(
    "policy",
    [
        raising(ValueError("in the policy")),
        raising(SystemExit(1)),
        lambda number, exception: "soon",
        lambda number, exception: float("nan"),
        lambda number, exception: None,
    ],
    ids=["raises", "exits", "text", "NaN", "None"],
)
def test_a_policy_that_answers_nonsense_does_not_keep_the_attempt_from_the_books(
    bench: Bench, policy
):
    def body(context):
        raise ValueError("the job's own")

    task = replace(atomic_job, retry=policy)
    ran = bench.run(body, task)
    assert_recorded(ran)
    assert ran.attempt.error_message == "the job's own"


def test_a_policy_is_told_the_number_and_the_error(bench: Bench):
    told = []

    def policy(number, error):
        told.append((number, str(error)))
        return 0.0

    def body(context):
        raise ValueError("no such order")

    task = replace(atomic_job, retry=policy)
    ran = bench.run(body, task)
    bench.again(ran, task)
    assert told == [(1, "no such order"), (2, "no such order")]
