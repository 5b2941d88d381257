"""Progress and log lines on SQLite: they wait for the write lock, which an atomic job may hold."""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue.storage.busy import writes
from jobqueue.storage.records import NewLine, NewProgress
from jobqueue.storage.reports import head_of
from jobqueue.storage.sqlite_base import SQLiteStatements
from jobqueue.storage.sqlite_values import after


class SQLiteReports(SQLiteStatements):
    """See `jobqueue.storage.reports.ReportStorage`."""

    @writes
    def write_progress(self, rows: Sequence[NewProgress]) -> None:
        clock = self._clock()
        self._each(
            "write_progress", [row._asdict() | {"at": after(clock, -row.ago)} for row in rows]
        )

    @writes
    def write_lines(self, rows: Sequence[NewLine], keep: int) -> None:
        clock = self._clock()
        self._each("write_line", [row._asdict() | {"at": after(clock, -row.ago)} for row in rows])
        head = head_of(keep)
        newest = {(row.job_id, row.fence): row.number for row in sorted(rows)}
        self._each(
            "drop_lines",
            [
                {"job_id": job, "fence": fence, "head": head, "last": number - (keep - head)}
                for (job, fence), number in newest.items()
                if number > keep
            ],
        )
