"""The breaker keeps hints from costing those who enqueue more than a part of their time."""

import logging

import pytest

from jobqueue.events import Event
from jobqueue.hints.breaker import MAX_PAUSE_SECONDS, PAUSE_SECONDS, SHARE, Breaker


class Server:
    """Something to call that takes time on a clock of its own, and may fail."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.calls = 0
        self.seconds = 0.0
        self.error: Exception | None = None

    def __call__(self) -> None:
        self.calls += 1
        self.now += self.seconds
        if self.error is not None:
            raise self.error


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def breaker(server: Server) -> Breaker:
    return Breaker(repr, lambda: server.now, backend="default")


def test_a_healthy_server_is_always_called(server: Server, breaker: Breaker) -> None:
    assert all(breaker.call(server) for _ in range(50))
    assert server.calls == 50


def test_a_failure_is_followed_by_a_pause_in_which_nothing_is_tried(
    server: Server, breaker: Breaker
) -> None:
    server.error = OSError("refused")
    assert not any(breaker.call(server) for _ in range(50))
    assert server.calls == 1


def test_one_call_is_let_through_after_the_pause(server: Server, breaker: Breaker) -> None:
    server.error = OSError("refused")
    breaker.call(server)
    server.now += PAUSE_SECONDS
    breaker.call(server)
    breaker.call(server)
    assert server.calls == 2


def test_others_are_refused_while_the_trial_runs(server: Server, breaker: Breaker) -> None:
    server.error = OSError("refused")
    breaker.call(server)
    server.now += PAUSE_SECONDS
    server.error = None
    inner: list[bool] = []
    assert breaker.call(lambda: inner.append(breaker.call(server)))
    assert inner == [False]


def test_a_call_that_hung_long_is_followed_by_a_longer_pause(
    server: Server, breaker: Breaker
) -> None:
    server.error, server.seconds = TimeoutError(), 1.0
    breaker.call(server)
    server.now += 2 * PAUSE_SECONDS
    breaker.call(server)
    assert server.calls == 1


def test_no_pause_lasts_for_ever(server: Server, breaker: Breaker) -> None:
    server.error, server.seconds = TimeoutError(), 3_600.0
    breaker.call(server)
    server.now += MAX_PAUSE_SECONDS
    breaker.call(server)
    assert server.calls == 2


def test_a_hiccup_does_not_pause(server: Server, breaker: Breaker) -> None:
    server.seconds = 0.1
    assert breaker.call(server)
    server.seconds = 0.0
    assert breaker.call(server)


def test_a_server_that_is_always_slow_costs_a_twentieth_of_the_time(
    server: Server, breaker: Breaker
) -> None:
    server.seconds = 0.1
    began = server.now
    while server.now < began + 1_000:
        if not breaker.call(server):
            server.now += 0.01
    assert server.calls * server.seconds < 1.1 * SHARE * 1_000


def test_recovery_lets_every_call_through_again(server: Server, breaker: Breaker) -> None:
    server.error = OSError("refused")
    breaker.call(server)
    server.error = None
    server.now += PAUSE_SECONDS
    assert all(breaker.call(server) for _ in range(10))


def test_each_change_of_state_is_said_once(
    server: Server, breaker: Breaker, events: list[Event]
) -> None:
    for error in (OSError("refused"), OSError("refused"), None, None):
        server.error = error
        breaker.call(server)
        server.now += PAUSE_SECONDS
    assert [(e.name, e.level) for e in events] == [
        ("hints.sending_failed", logging.WARNING),
        ("hints.sending_recovered", logging.INFO),
    ]
