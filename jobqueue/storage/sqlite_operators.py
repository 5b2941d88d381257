"""What operators may do on SQLite, what they look at, and the audit.

Row locks do not exist: an operator waits for the database's write lock like everybody, except a
forced cancel, which says that it is locked once the connection's own busy time-out is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import OperationalError

from jobqueue.conf import AUDIT_PATIENCE_SECONDS, DEADLINE_SLACK_SECONDS
from jobqueue.exceptions import RowLocked
from jobqueue.storage.busy import immediate_on, is_busy, is_foreign, reads, writes
from jobqueue.storage.sqlite_health import SQLiteHealth
from jobqueue.storage.sqlite_rollups import SQLiteRollups
from jobqueue.storage.sqlite_values import adapted, after
from jobqueue.storage.sqlite_waiting import SQLiteWaiting
from jobqueue.storage.statements import statement


class SQLiteOperators(SQLiteHealth, SQLiteRollups, SQLiteWaiting):
    """The protocol's parts for operators, status and audit."""

    # --- operators ----------------------------------------

    @reads
    def clock(self) -> datetime:
        return self._clock()

    @writes
    def cancel_waiting(self, ids: Sequence[UUID], reason: str) -> list[UUID]:
        rows = self._rows("cancel_waiting", ids=list(ids), reason=reason[:64], now=self._clock())
        return [UUID(hex=row[0]) for row in rows]

    @writes
    def discard_dead(self, ids: Sequence[UUID], reason: str) -> list[UUID]:
        rows = self._rows("discard_dead", ids=list(ids), reason=reason[:64], now=self._clock())
        return [UUID(hex=row[0]) for row in rows]

    def force_cancel(self, job_id: UUID, fence: int, worker: UUID, reason: str) -> bool:
        """End a running job as cancelled; RowLocked if the write lock is not free soon."""
        run = {"id": job_id, "fence": fence, "worker": worker, "reason": reason[:64]}
        if is_foreign(self.connection):
            return self._force_cancel(run)
        try:
            with immediate_on(self.connection):
                return self._force_cancel(run)
        except OperationalError as error:
            if is_busy(error):
                raise RowLocked(
                    "A transaction that has not ended holds the database's only write lock; "
                    "try again."
                ) from error
            raise

    def _force_cancel(self, run: dict[str, Any]) -> bool:
        run = {**run, "now": self._clock()}
        self._rows("insert_cancelled", **run)
        return bool(self._changed("force_cancel", **run))

    # --- audit ----------------------------------------

    @reads
    def audit_rows(self, check: str, limit: int) -> list[dict[str, Any]]:
        late = after(self._clock(), -AUDIT_PATIENCE_SECONDS)
        overdue = after(late, -DEADLINE_SLACK_SECONDS)
        parameters = adapted({"limit": limit, "late": late, "overdue": overdue})
        with self.connection.cursor() as cursor:
            cursor.execute(statement(self.vendor, f"audit_{check}"), parameters)
            columns = [column[0] for column in cursor.description]
            return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    @reads
    def database_settings(self) -> dict[str, str]:
        """Return journal_mode, synchronous, busy_timeout (ms), transaction_mode, version."""
        options = self.connection.settings_dict.get("OPTIONS", {})
        found = {
            name: str(self._rows(f"read_{name}")[0][0])
            for name in ("journal_mode", "synchronous", "busy_timeout", "version")
        }
        return {**found, "transaction_mode": str(options.get("transaction_mode") or "DEFERRED")}
