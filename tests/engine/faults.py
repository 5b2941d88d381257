"""Storage that can be cut at an exact line: a test hooks a method and decides when it proceeds.

    with faults.at("finish_one", hook):      # hook(storage, proceed) -> what the method returns

`path()` is the storage class for the option STORAGE of the database in use. What is not hooked
is inherited, so that nothing else takes another way than in production.
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


class PostgresWithFaults(PostgresStorage):
    """PostgresStorage whose methods can be hooked."""


class SQLiteWithFaults(SQLiteStorage):
    """SQLiteStorage whose methods can be hooked."""


def _class() -> type[Storage]:
    return PostgresWithFaults if connection.vendor == "postgresql" else SQLiteWithFaults


def path() -> str:
    """Return the dotted path of the class for the database that the tests run on."""
    return f"{_class().__module__}.{_class().__qualname__}"


@contextmanager
def at(name: str, hook: Hook) -> Iterator[None]:
    """Call `hook` instead of the method, for the time of the block."""
    cls = _class()
    real = getattr(cls, name)

    def method(self: Storage, *args: Any, **kwargs: Any) -> Any:
        return hook(self, partial(real, self, *args, **kwargs))

    assert name not in vars(cls)
    setattr(cls, name, method)
    try:
        yield
    finally:
        delattr(cls, name)


def once(hook: Hook) -> Hook:
    """Return a hook that does `hook` at the first call and proceeds at the others."""
    calls = []

    def first_only(storage: Storage, proceed: Callable[[], Any]) -> Any:
        calls.append(1)
        return hook(storage, proceed) if len(calls) == 1 else proceed()

    return first_only
