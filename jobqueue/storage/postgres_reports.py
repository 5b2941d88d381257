"""Progress and log lines on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jobqueue.storage.postgres_base import PostgresStatements
from jobqueue.storage.records import NewLine, NewProgress
from jobqueue.storage.reports import head_of


class PostgresReports(PostgresStatements):
    """See `jobqueue.storage.reports.ReportStorage`."""

    def write_progress(self, rows: Sequence[NewProgress]) -> None:
        self._rows("write_progress", rows=_as_json(rows))

    def write_lines(self, rows: Sequence[NewLine], keep: int) -> None:
        head = head_of(keep)
        self._rows("write_lines", rows=_as_json(rows), head=head, tail=keep - head)


def _as_json(rows: Sequence[NewProgress] | Sequence[NewLine]) -> str:
    return json.dumps(
        [row._asdict() | {"job_id": row.job_id.hex} for row in rows], ensure_ascii=False
    )
