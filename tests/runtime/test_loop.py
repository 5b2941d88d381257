"""The loop: survives every error, says so once, and comes back."""

import logging
import threading

import pytest
from django.db import OperationalError

from jobqueue.events import subscribe
from jobqueue.runtime.loop import MAX_BACKOFF_SECONDS, Loop


@pytest.fixture
def events():
    found = []
    stop = subscribe(lambda event: found.append((event.name, event.facts.get("loop"))))
    yield found
    stop()


def scripted(*turns, reset=lambda: None):
    """A loop that takes these turns (a value or an error) without waiting, and then ends."""
    left = list(turns)
    taken = []

    def run_once():
        loop.wake()  # the pause after this turn is over before it begins
        turn = left.pop(0)
        taken.append(turn)
        if not left:
            loop.stop()
        if isinstance(turn, BaseException):
            raise turn
        return turn

    loop = Loop("test", run_once, interval=3_600.0, reset=reset)
    return loop, taken


def test_it_turns_until_it_is_stopped():
    loop, taken = scripted(False, True, None)
    loop.run()
    assert taken == [False, True, None]
    assert loop.rounds == 3
    assert loop.is_stopping


def test_a_turn_that_asks_for_another_gets_it_at_once():
    turns = []

    def run_once():
        turns.append(1)
        if len(turns) == 3:
            loop.stop()
        return True

    loop = Loop("test", run_once, interval=3_600.0)
    loop.run()
    assert len(turns) == 3


@pytest.mark.parametrize("error", [OperationalError("away"), ValueError("a bug"), MemoryError()])
def test_an_error_does_not_end_it(error, events):
    loop, taken = scripted(error, False)
    loop.run()
    assert taken == [error, False]
    assert loop.rounds == 1


def test_an_outage_is_one_line_when_it_begins_and_one_when_it_ends(events):
    away = [OperationalError("away") for _ in range(5)]
    loop, _ = scripted(False, *away, False, False, *away, False)
    loop.run()
    assert events == [("loop.failing", "test"), ("loop.recovered", "test")] * 2


def test_it_says_that_it_is_failing_while_it_is():
    seen = []
    loop, _ = scripted(OperationalError("away"), OperationalError("away"), False)
    stop = subscribe(lambda event: seen.append((event.name, loop.is_failing)))
    loop.run()
    stop()
    assert seen == [("loop.failing", True), ("loop.recovered", False)]


def test_the_line_about_an_error_is_short_and_one(caplog):
    loop, _ = scripted(OperationalError("away\nDETAIL: password=secret " + "x" * 10_000), False)
    with caplog.at_level(logging.WARNING, logger="jobqueue"):
        loop.run()
    (line,) = [record.getMessage() for record in caplog.records if "failing" in record.message]
    assert "\n" not in line
    assert len(line) < 500
    assert "secret" not in line


def test_every_error_drops_the_connection_also_if_that_fails():
    resets = []

    def reset():
        resets.append(1)
        raise OperationalError("cannot even close")

    loop, taken = scripted(OperationalError("away"), OperationalError("away"), False, reset=reset)
    loop.run()
    assert len(resets) == 2
    assert len(taken) == 3


def test_the_pause_after_errors_grows_is_bounded_and_ends_with_them():
    pauses = []
    away = [OperationalError("away") for _ in range(20)]
    loop, _ = scripted(*away, False)
    real = loop._turn

    def turn():
        again = real()
        pauses.append(loop._pause)
        return again

    loop._turn = turn
    loop.run()
    assert pauses[0] >= 0.07
    assert max(pauses) <= MAX_BACKOFF_SECONDS
    assert min(pauses[10:20]) > pauses[0]
    assert pauses[-1] == 0.0


def test_a_wake_ends_the_wait_of_a_loop_in_a_thread():
    turned = threading.Semaphore(0)
    loop = Loop("test", turned.release, interval=3_600.0)
    loop.start()
    assert turned.acquire(timeout=60)
    loop.wake()
    assert turned.acquire(timeout=60)
    loop.stop()
    assert loop.join(60)


def test_a_stop_before_the_start_means_no_turn():
    loop, taken = scripted(False)
    loop.stop()
    loop.run()
    assert taken == []


def test_a_turn_may_ask_for_a_short_pause():
    turns = []

    def run_once():
        turns.append(1)
        loop.soon(0.001)
        if len(turns) == 3:
            loop.stop()

    loop = Loop("test", run_once, interval=3_600.0)
    loop.run()
    assert len(turns) == 3
