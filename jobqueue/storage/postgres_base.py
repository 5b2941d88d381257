"""How statements run on PostgreSQL: the files of ``sql/postgresql/`` through Django's cursor."""

from __future__ import annotations

from typing import Any, ClassVar

from jobqueue.storage.protocol import Storage
from jobqueue.storage.statements import statement


class PostgresStatements(Storage):
    """Runs the files of ``sql/postgresql/``; knows nothing of what they mean."""

    vendor: ClassVar[str] = "postgresql"

    def _rows(self, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._run(statement(self.vendor, name), parameters)

    def _run(self, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []
