"""Redis away, hanging, silent, full, evicting, flushed, restarted, demoted: hints come back.

What is lost is latency: every commit stands, nothing is raised, and the poll finds the job.
"""

import logging
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import transaction
from redis import Redis

from jobqueue import hints
from jobqueue.engine.announce import announce
from jobqueue.events import Event
from jobqueue.hints.redis_streams import RedisTransport, describe
from project.servers import RedisServer
from tests.app.models import Effect
from tests.hints.conftest import Listen, Use
from tests.hints.ears import Ear, until, until_heard
from tests.hints.servers import FlippingRedis, closed_port, full_backlog, silent_server

PASSWORD = "hunter-2-hunter"
ENQUEUES = 50


@pytest.fixture
def redis(use: Use, redis_server: RedisServer) -> Iterator[Redis]:
    use(hints="redis", redis_url=redis_server.url)
    with Redis.from_url(redis_server.url) as client:
        client.flushall()
        yield client


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often Redis was tried, on a clock that stands still for the breaker."""
    counted: list[int] = []
    deliver = RedisTransport.deliver

    def count(self: RedisTransport, *args: Any) -> None:
        counted.append(1)
        deliver(self, *args)

    monkeypatch.setattr(RedisTransport, "deliver", count)
    return counted


def stop_the_breakers_clock() -> None:
    hints._sender("default")._breaker._clock = lambda: 1_000.0


def start_the_breakers_clock_after_the_pause() -> None:
    hints._sender("default")._breaker._clock = lambda: 2_000.0


def enqueue_many_times() -> None:
    """Commit effects, each with a hint, in a transaction and outside of one."""
    connection = transaction.get_connection()
    for number in range(ENQUEUES):
        with transaction.atomic():
            Effect.objects.create(job_id=str(number))
            announce(connection, "default", ["default"])


# --- B06: enqueueing while Redis is away ----------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("trouble", [closed_port, full_backlog, silent_server])
def test_enqueueing_goes_on_while_redis_cannot_be_reached(
    trouble: Any, use: Use, tries: list[int], events: list[Event]
) -> None:
    server: AbstractContextManager[int] = trouble()
    with server as port:
        use(hints="redis", redis_url=f"redis://:{PASSWORD}@127.0.0.1:{port}/0")
        stop_the_breakers_clock()
        enqueue_many_times()
    assert Effect.objects.count() == ENQUEUES
    assert len(tries) == 1
    assert hints.lost("default") == ENQUEUES
    assert [e.name for e in events if e.level >= logging.WARNING] == ["hints.sending_failed"]
    assert sum(e.facts["count"] for e in events if e.name == "hints.lost") == ENQUEUES


@pytest.mark.django_db(transaction=True)
def test_enqueueing_goes_on_with_a_wrong_password(
    redis: Redis, redis_server: RedisServer, use: Use, tries: list[int], events: list[Event]
) -> None:
    redis.config_set("requirepass", "right")
    use(hints="redis", redis_url=redis_server.url.replace("//", f"//:{PASSWORD}@"))
    stop_the_breakers_clock()
    enqueue_many_times()
    assert Effect.objects.count() == ENQUEUES
    assert len(tries) == 1
    assert hints.lost("default") == ENQUEUES
    (failed,) = [e for e in events if e.name == "hints.sending_failed"]
    assert "AuthenticationError" in failed.facts["error"]


def test_sending_recovers_by_itself(
    redis: Redis, redis_server: RedisServer, listen: Listen, events: list[Event]
) -> None:
    ear = listen("default")
    stop_the_breakers_clock()
    redis_server.halt()
    hints.send("default", ["default"])
    assert hints.lost("default") == 1
    redis_server.resume()
    start_the_breakers_clock_after_the_pause()
    until_heard(ear, "default")
    assert "hints.sending_recovered" in [e.name for e in events]


# --- B29: the listener after trouble --------------------------------------------------------------


def test_hints_are_heard_again_after_five_restarts(
    redis: Redis, redis_server: RedisServer, listen: Listen
) -> None:
    ear = listen("default")
    for _ in range(5):
        redis_server.restart(signal.SIGKILL)
    until_heard(ear, "default")


def test_hints_are_heard_again_after_connections_are_killed(redis: Redis, listen: Listen) -> None:
    ear = listen("default")
    for kind in ("normal", "pubsub"):
        redis.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
    until_heard(ear, "default")


def test_hints_are_heard_again_after_the_password_was_rotated_and_rotated_back(
    redis: Redis, listen: Listen, events: list[Event]
) -> None:
    ear = listen("default")
    redis.config_set("requirepass", "new")
    redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    until(lambda: not ear.listener.is_listening)
    redis.config_set("requirepass", "")
    until_heard(ear, "default")
    until(lambda: said(events) == ["hints.listening_failed", "hints.listening_recovered"])


def test_hints_are_heard_again_after_a_failover_to_a_replica_and_back(
    use: Use, listen: Listen
) -> None:
    with FlippingRedis() as server:
        use(hints="redis", redis_url=server.url)
        ear = listen("default")
        server.is_replica = True
        server.restart()
        until(lambda: not ear.listener.is_listening)
        hints.send("default", ["default"])
        assert hints.lost("default") == 1
        server.is_replica = False
        server.restart()
        until_heard(ear, "default")


def test_a_frozen_redis_is_left_and_heard_again(
    redis: Redis, redis_server: RedisServer, listen: Listen
) -> None:
    ear = listen("default")
    redis_server.send_signal(signal.SIGSTOP)
    until(lambda: not ear.listener.is_listening)
    redis_server.send_signal(signal.SIGCONT)
    until_heard(ear, "default")


def test_a_listener_started_while_redis_is_away_hears_later(
    redis: Redis, redis_server: RedisServer, listen: Listen, events: list[Event]
) -> None:
    redis_server.halt()
    deaf = hints.listen("default", ["default"], lambda queue: None)
    deaf.start()
    until(lambda: said(events) == ["hints.listening_failed"])
    redis_server.resume()
    until(lambda: deaf.is_listening)
    deaf.stop()


def test_after_a_reconnection_every_queue_is_looked_at(
    redis: Redis, redis_server: RedisServer, listen: Listen
) -> None:
    ear = listen("default", "mail")
    redis_server.restart()
    ear.wait_for("mail")  # nobody sent a hint: those sent meanwhile may be lost


def test_an_error_of_the_worker_does_not_end_the_listener(
    redis: Redis, listen: Listen, monkeypatch: pytest.MonkeyPatch, events: list[Event]
) -> None:
    ear = listen("default")
    monkeypatch.setattr(ear.listener, "_on_hint", fail_once_for(ear, ValueError("of the worker")))
    until_heard(ear, "default")
    until(lambda: said(events) == ["hints.listening_failed", "hints.listening_recovered"])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_listener_that_ends_by_force_says_so(
    redis: Redis, listen: Listen, monkeypatch: pytest.MonkeyPatch, events: list[Event]
) -> None:
    ear = listen("default")
    monkeypatch.setattr(ear.listener, "_on_hint", fail_once_for(ear, SystemExit()))
    hints.send("default", ["default"])
    until(lambda: said(events) == ["hints.listener_ended"])


# --- B39: full, evicting, flushed -----------------------------------------------------------------


def test_a_full_redis_loses_hints_only(redis: Redis, listen: Listen) -> None:
    ear = listen("default")
    stop_the_breakers_clock()
    redis.config_set("maxmemory", "1")
    hints.send("default", ["default"])
    assert hints.lost("default") == 1
    redis.config_set("maxmemory", "0")
    start_the_breakers_clock_after_the_pause()
    until_heard(ear, "default")


def test_hints_are_heard_again_after_eviction(redis: Redis, listen: Listen) -> None:
    ear = listen("default")
    redis.config_set("maxmemory-policy", "allkeys-lru")
    redis.config_set("maxmemory", "1")
    until(lambda: redis.dbsize() == 0)
    redis.config_set("maxmemory", "0")
    until_heard(ear, "default")


@pytest.mark.parametrize("wants", [True, False])
def test_hints_are_heard_again_after_a_flush(redis: Redis, listen: Listen, wants: bool) -> None:
    ear = listen("default", wants=wants)
    redis.flushall()
    ear.listener.want(True)
    until_heard(ear, "default")


def test_a_key_of_somebody_else_in_our_place_is_reported_and_outlived(
    redis: Redis, listen: Listen, events: list[Event]
) -> None:
    ear = listen("default")
    (key,) = redis.keys("*")
    redis.set(key, "not a stream")
    until(lambda: not ear.listener.is_listening)
    redis.delete(key)
    until_heard(ear, "default")
    assert "WRONGTYPE" in events[0].facts["error"]


# --- secrets --------------------------------------------------------------------------------------


def test_passwords_never_reach_the_logs(
    use: Use, events: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with closed_port() as port:
        use(hints="redis", redis_url=f"redis://user:{PASSWORD}@127.0.0.1:{port}/0")
        hints.send("default", ["default"])
        deaf = hints.listen("default", ["default"], lambda queue: None)
        deaf.start()
        until(lambda: "hints.listening_failed" in said(events))
        deaf.stop()
    assert "hints.sending_failed" in caplog.text
    assert PASSWORD not in caplog.text


def test_a_password_that_the_server_repeats_is_blanked() -> None:
    answer = f"unknown command 'AUTH', with args beginning with: '{PASSWORD}'\nmore"
    assert describe(ValueError(answer), [PASSWORD]).endswith("beginning with: '***'")


def said(events: list[Event]) -> list[str]:
    return [e.name for e in events if e.name.startswith("hints.listen")]


def fail_once_for(ear: Ear, error: BaseException) -> Any:
    errors = [error]

    def on_hint(queue: str) -> None:
        if errors:
            raise errors.pop()
        ear.hear(queue)

    return on_hint
