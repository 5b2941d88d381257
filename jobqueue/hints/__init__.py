"""Hints: "look at queue q", so that a worker need not wait for its next poll.

A hint has no payload and may be lost at any moment; a poll is what correctness rests on. Only
latency depends on what is here.

    send     the side that enqueues: never raises, bounded delay, to be called after the commit
    listen   the side that works: one daemon thread per process that survives everything
    kind     which way the hints of a TASKS alias go: "redis", "postgres" or "none"
    lost     how many this process could not send
    trouble  why none can be sent right now

`jobqueue.engine.announce` decides when: once per transaction and queue, after its commit.

Options: HINTS and REDIS_URL (`jobqueue.conf`). Limits are named beside their use: time-outs in
`redis_streams`, the time that sending may cost in `breaker`, back-off in `listener`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal

from django.core.signals import setting_changed
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.dispatch import receiver

from jobqueue.conf import options_for
from jobqueue.exceptions import InvalidOptions
from jobqueue.hints.listener import Listener
from jobqueue.hints.sender import Broken, Sender, Transport

__all__ = ["Kind", "Listener", "kind", "listen", "lost", "send", "trouble"]

Kind = Literal["redis", "postgres", "none"]


def kind(alias: str) -> Kind:
    """Return the way that hints of TASKS alias `alias` go.

    A worker behind a pooler cannot listen to PostgreSQL; its listener finds that out itself.
    Raise InvalidOptions if HINTS names a way that cannot be gone.
    """
    options = options_for(alias)
    on_postgres = connections[options.database].vendor == "postgresql"
    if options.hints == "redis":
        _require_redis(alias, options.redis_url)
        return "redis"
    if options.hints == "postgres":
        if not on_postgres:
            raise InvalidOptions(
                f"HINTS of TASKS[{alias!r}] is 'postgres', but its database is not PostgreSQL."
            )
        return "postgres"
    if options.hints == "none":
        return "none"
    if options.redis_url and _has_redis():
        return "redis"
    return "postgres" if on_postgres else "none"


def send(alias: str, queues: Iterable[str], connection: BaseDatabaseWrapper | None = None) -> None:
    """Send one hint per queue, now. Never raise; count what could not be sent.

    A hint over PostgreSQL is sent on `connection`, by default Django's own of this thread (a
    worker gives one of its own, rather than open another), and not at all while that is in a
    transaction.
    """
    names = set(queues)
    if names:
        _sender(alias).send(names, connection)


def lost(alias: str) -> int:
    """Return how many hints of `alias` this process could not send."""
    return _sender(alias).lost


def trouble(alias: str) -> str:
    """Return why hints of `alias` cannot be sent now, empty if they can. Never raise.

    Redis is asked, with the time-outs of sending. Over PostgreSQL whoever can ask can also send.
    """
    return _sender(alias).trouble()


def listen(alias: str, queues: Sequence[str], on_hint: Callable[[str], None]) -> Listener:
    """Return a listener, not yet started, that calls `on_hint` (in its thread) with a queue's name.

    `queues` may be empty and set later by `Listener.watch`. Raise InvalidOptions as `kind` does.
    """
    way = kind(alias)
    if way == "redis":
        from jobqueue.hints.redis_streams import RedisListener

        options = options_for(alias)
        return RedisListener(
            alias, queues, on_hint, options.redis_url or "", options.database, _sender(alias)
        )
    if way == "postgres":
        from jobqueue.hints.postgres_notify import PostgresListener

        return PostgresListener(alias, queues, on_hint, options_for(alias).database)
    from jobqueue.hints.polling import PollingListener

    return PollingListener(queues)


@lru_cache(maxsize=64)
def _sender(alias: str) -> Sender:
    try:
        return Sender(alias, _transport(alias))
    except Exception as error:
        # Enqueueing must not fail because of hints: the breaker says once what is wrong.
        return Sender(alias, Broken(error))


def _transport(alias: str) -> Transport:
    way = kind(alias)
    options = options_for(alias)
    if way == "redis":
        from jobqueue.hints.redis_streams import RedisTransport

        return RedisTransport(options.redis_url or "", options.database)
    if way == "postgres":
        from jobqueue.hints.postgres_notify import PostgresTransport

        return PostgresTransport(options.database)
    return Transport()


def _has_redis() -> bool:
    try:
        import redis  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return True


def _require_redis(alias: str, url: str | None) -> None:
    if not _has_redis():
        raise InvalidOptions(
            f"HINTS of TASKS[{alias!r}] is 'redis', which needs the package redis: install "
            "django-jobqueue[redis], or set HINTS to 'auto'."
        )
    if not url:
        raise InvalidOptions(
            f"HINTS of TASKS[{alias!r}] is 'redis', but there is no REDIS_URL, neither among its "
            "OPTIONS nor in the environment."
        )


@receiver(setting_changed)
def _forget_senders(*, setting: str, **kwargs: Any) -> None:
    if setting in ("TASKS", "DATABASES"):
        _sender.cache_clear()
