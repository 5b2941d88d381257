"""Hints as Redis Streams: a stream and a group per queue, so that one hint wakes one worker.

Redis holds nothing but hints and may lose, refuse, evict or flush them at any moment. All keys
bear the database's name (two projects on one Redis do not meet) and one hash tag (a cluster keeps
them on one node), are capped, and expire. Groups are created on demand and again when they are
gone.

All workers read as one consumer, without acknowledgements (NOACK): a group hands each entry out
once however its consumer is called, so there are no pending entries to claim and no consumers of
dead workers to delete.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.events import line_of
from jobqueue.exceptions import InvalidOptions
from jobqueue.hints.listener import READ_SECONDS, ThreadListener
from jobqueue.hints.names import hint_name, namespace
from jobqueue.hints.sender import MAX_ERROR_LENGTH, Sender, Transport

if TYPE_CHECKING:
    from redis import Redis

GROUP = "workers"
CONSUMER = "worker"
SEND_TIMEOUT_SECONDS = 0.2
"""For connecting and for each answer, when somebody who enqueues waits for it."""
LISTEN_TIMEOUT_SECONDS = 2.0
"""The same for a worker's listener, beyond the time that it asks the server to wait."""
MAX_HINTS = 100
"""Length of a stream (about: it is trimmed by whole blocks): more hints than workers to wake."""
KEY_SECONDS = 3_600
"""Life of a stream nobody sends to, so that queues of the past leave nothing behind."""
PROBE_SECONDS = 60
"""Life of the key by which a probe finds out whether Redis takes writes."""
REGROUP_SECONDS = 0.05
"""Pause after a group was found gone: under eviction it may go again at once."""
OURS = (
    "decode_responses",
    "health_check_interval",
    "max_connections",
    "protocol",
    "retry_on_error",
    "retry_on_timeout",
    "socket_connect_timeout",
    "socket_timeout",
)
"""Settings that a URL may carry for other users of this Redis, but that hints decide themselves."""


class RedisTransport(Transport):
    """Sends hints to Redis; safe to use from any thread and after a fork."""

    kind: ClassVar[str] = "redis"

    def __init__(self, url: str, database: str) -> None:
        self._secrets = secrets_of(url)
        self._client = connect(url, SEND_TIMEOUT_SECONDS, SEND_TIMEOUT_SECONDS)
        self._namespace = namespace(database)

    def deliver(self, queues: Collection[str], connection: BaseDatabaseWrapper | None) -> None:
        pipeline = self._client.pipeline(transaction=False)
        for queue in queues:
            key = key_of(self._namespace, queue)
            pipeline.xadd(key, {"h": ""}, maxlen=MAX_HINTS, approximate=True)
            pipeline.expire(key, KEY_SECONDS)
        try:
            pipeline.execute()
        except Exception:
            # A replica that was the master refuses writes for as long as we stay connected to it.
            self._client.connection_pool.disconnect(inuse_connections=False)
            raise

    def probe(self) -> None:
        # A write: a replica, or a server out of memory, would answer a ping.
        self._client.set(key_of(self._namespace, ""), "", ex=PROBE_SECONDS)  # no queue has no name

    def describe(self, error: Exception) -> str:
        return describe(error, self._secrets)


class RedisListener(ThreadListener):
    """Reads the streams of its queues while the worker has free slots."""

    kind: ClassVar[str] = "redis"
    keeps_hints: ClassVar[bool] = True

    def __init__(
        self,
        alias: str,
        queues: Sequence[str],
        on_hint: Callable[[str], None],
        url: str,
        database: str,
        sender: Sender,
    ) -> None:
        super().__init__(alias, queues, on_hint)
        self._secrets = secrets_of(url)
        self._client = connect(url, LISTEN_TIMEOUT_SECONDS, READ_SECONDS + LISTEN_TIMEOUT_SECONDS)
        self._namespace = namespace(database)
        self._sender = sender

    def pass_on(self, queues: Iterable[str]) -> None:
        self._sender.send(set(queues))

    def _connect(self) -> bool:
        self._client.ping()
        self._create_groups(self._queues)
        return True

    def _read(self, queues: Sequence[str]) -> Iterable[str]:
        from redis.exceptions import ResponseError

        watched = {key_of(self._namespace, queue): queue for queue in queues}
        try:
            answer = self._client.xreadgroup(
                GROUP,
                CONSUMER,
                dict.fromkeys(watched, ">"),
                count=MAX_HINTS,
                block=int(READ_SECONDS * 1000),
                noack=True,
            )
        except ResponseError as error:
            if not is_group_gone(error):
                raise
            self._create_groups(queues)
            self._stopping.wait(REGROUP_SECONDS)
            return ()
        streams = cast("list[tuple[bytes, Any]]", answer or [])
        return [watched[key.decode()] for key, entries in streams if entries]

    def _create_groups(self, queues: Sequence[str]) -> None:
        from redis.exceptions import ResponseError

        for queue in queues:
            key = key_of(self._namespace, queue)
            try:
                # From the first entry on: it may have been sent before the group was there.
                self._client.xgroup_create(key, GROUP, id="0", mkstream=True)
            except ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise
            self._client.expire(key, KEY_SECONDS)

    def _disconnect(self) -> None:
        self._client.connection_pool.disconnect()

    def _describe(self, error: Exception) -> str:
        return describe(error, self._secrets)


def connect(url: str, connect_timeout: float, timeout: float) -> Redis:
    """Return a client, not yet connected, that never retries by itself.

    Raise InvalidOptions, without the URL in it, if the URL cannot be read.
    """
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    options = parse(url)
    pool = redis.ConnectionPool(
        **{name: value for name, value in options.items() if name not in OURS},
        socket_connect_timeout=connect_timeout,
        socket_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
    return redis.Redis(connection_pool=pool)


def parse(url: str) -> dict[str, Any]:
    """Return the connection settings in `url`; raise InvalidOptions without the URL in it."""
    from redis.connection import parse_url

    try:
        return dict(parse_url(url))  # type: ignore[no-untyped-call]
    except ValueError:
        # The message of this error may hold a part of the password.
        raise InvalidOptions(
            "REDIS_URL cannot be read: it must be redis://, rediss:// or unix://, with special "
            "characters of a password percent-encoded."
        ) from None


def secrets_of(url: str) -> list[str]:
    """Return what must never be logged of `url`."""
    return [value for name, value in parse(url).items() if "password" in name and value]


def describe(error: Exception, secrets: Iterable[str]) -> str:
    """Return an error as one line; a server may repeat a password that it did not understand."""
    line = line_of(error, None)  # a secret that is cut in two could not be told any more
    for secret in secrets:
        line = line.replace(secret, "***")
    return line[:MAX_ERROR_LENGTH]


def key_of(namespace: str, queue: str) -> str:
    """Return the key of a queue's stream."""
    return f"jobqueue:{{{namespace}}}:{hint_name(queue)}"


def is_group_gone(error: Exception) -> bool:
    """Return whether a read failed because its stream or group was flushed, evicted or expired."""
    return str(error).startswith(("NOGROUP", "UNBLOCKED"))
