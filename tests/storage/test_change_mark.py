"""The mark of changes: it differs after every commit of somebody else, and not without one."""

from contextlib import closing

import pytest
from django.db import connection

from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import open_connection, transaction_on
from tests.storage.making import insert

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_differs_after_a_commit_of_another_session_only():
    writer = storage_for(connection)
    with closing(open_connection("default")) as session:
        watcher = storage_for(session)
        assert is_still(watcher)
        assert watcher.state_counts(10) == {}
        before = watcher.change_mark()
        with transaction_on(connection):
            insert(writer)
            during = watcher.change_mark()
            assert watcher.state_counts(10) == {}
        after = watcher.change_mark()
        assert after not in (before, during)
        assert watcher.state_counts(10) == {"ready": 1}
        assert is_still(watcher)


def is_still(watcher: Storage) -> bool:
    """Return whether two marks are equal; a server's own upkeep may come between some."""
    return any(watcher.change_mark() == watcher.change_mark() for _ in range(100))
