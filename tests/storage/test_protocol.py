"""Both storages answer the whole protocol, with the protocol's own signatures."""

import inspect

import pytest

from jobqueue.storage import Storage
from jobqueue.storage.postgres import PostgresStorage
from jobqueue.storage.sqlite import SQLiteStorage

METHODS = [name for name, _ in inspect.getmembers(Storage, inspect.isfunction) if name[0] != "_"]


@pytest.mark.parametrize("cls", [PostgresStorage, SQLiteStorage])
def test_methods_have_the_protocols_signatures(cls: type[Storage]) -> None:
    said = {name: inspect.signature(getattr(Storage, name)) for name in METHODS}
    assert {name: inspect.signature(getattr(cls, name)) for name in METHODS} == said


@pytest.mark.parametrize("cls", [PostgresStorage, SQLiteStorage])
def test_no_method_of_the_protocol_is_left_unwritten(cls: type[Storage]) -> None:
    unwritten = [
        name
        for name in METHODS
        if getattr(cls, name) is getattr(Storage, name)
        and "NotImplementedError" in inspect.getsource(getattr(Storage, name))
    ]
    assert unwritten == []


def test_storage_is_picked_by_the_database(storage: Storage) -> None:
    assert storage.vendor == storage.connection.vendor
    assert storage.one_host == (storage.vendor == "sqlite")
