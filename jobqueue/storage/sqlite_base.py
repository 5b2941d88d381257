"""How statements run on SQLite: parameters and times in its formats, one clock a method."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from jobqueue.storage.protocol import Storage
from jobqueue.storage.sqlite_values import adapted, time_of
from jobqueue.storage.statements import statement


class SQLiteStatements(Storage):
    """Runs the files of ``sql/sqlite/``; knows nothing of what they mean."""

    vendor: ClassVar[str] = "sqlite"

    def _rows(self, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement(self.vendor, name), adapted(parameters))
            return cursor.fetchall() if cursor.description else []

    def _changed(self, name: str, /, **parameters: Any) -> int:
        """Run a statement and return how many rows it changed."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement(self.vendor, name), adapted(parameters))
            return int(cursor.rowcount)

    def _each(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a statement once for each of `rows`."""
        if not rows:
            return
        with self.connection.cursor() as cursor:
            cursor.executemany(statement(self.vendor, name), [adapted(row) for row in rows])

    def _clock(self, now: datetime | None = None) -> datetime:
        """Return the time of a method: `now`, else the database's, in milliseconds.

        Read once a method, after the lock was waited for, so that a method's times agree.
        """
        return time_of(self._rows("read_clock")[0][0] if now is None else now)
