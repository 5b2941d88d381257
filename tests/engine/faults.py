"""Storage that can be cut at an exact line: a test hooks a method and decides when it proceeds.

    with faults.at("finish_one", hook):      # hook(storage, proceed) -> what the method returns

`path()` is the storage class for the option STORAGE of the database in use.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import connection

from jobqueue.storage import Storage
from jobqueue.storage.postgres import PostgresStorage
from jobqueue.storage.sqlite import SQLiteStorage

Hook = Callable[[Storage, Callable[[], Any]], Any]

hooks: dict[str, Hook] = {}
METHODS = ("finish_one", "finish_many", "end_many", "hold", "record_step", "verdict",
           "mark_dead", "end_sessions", "server_started_at", "life_locks", "renew_worker",
           "workers")  # fmt: skip


def _hooked(base: type[Storage], name: str) -> Callable[..., Any]:
    real = getattr(base, name)

    def method(self: Storage, *args: Any, **kwargs: Any) -> Any:
        proceed = partial(real, self, *args, **kwargs)
        return hooks[name](self, proceed) if name in hooks else proceed()

    return method


class PostgresWithFaults(PostgresStorage):
    """PostgresStorage whose methods can be hooked."""


class SQLiteWithFaults(SQLiteStorage):
    """SQLiteStorage whose methods can be hooked."""


for _name in METHODS:
    setattr(PostgresWithFaults, _name, _hooked(PostgresStorage, _name))
    setattr(SQLiteWithFaults, _name, _hooked(SQLiteStorage, _name))


def path() -> str:
    """Return the dotted path of the class for the database that the tests run on."""
    cls = PostgresWithFaults if connection.vendor == "postgresql" else SQLiteWithFaults
    return f"{cls.__module__}.{cls.__qualname__}"


@contextmanager
def at(name: str, hook: Hook) -> Iterator[None]:
    """Call `hook` instead of the method, for the time of the block."""
    assert name in METHODS
    hooks[name] = hook
    try:
        yield
    finally:
        del hooks[name]


def once(hook: Hook) -> Hook:
    """Return a hook that does `hook` at the first call and proceeds at the others."""
    calls = []

    def first_only(storage: Storage, proceed: Callable[[], Any]) -> Any:
        calls.append(1)
        return hook(storage, proceed) if len(calls) == 1 else proceed()

    return first_only
