"""The result of an eager job: it also holds what was asked for, and what the job said of itself.

There is no row.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Self

from jobqueue.engine.reports import Batch
from jobqueue.results import JobLogLine, JobProgress, JobResult
from jobqueue.storage.records import NewJob, NewLine, NewProgress


class EagerResult(JobResult[..., Any]):
    """A JobResult whose progress and log lines are kept in memory.

    job: the row there would have been, as it was enqueued, or last changed by a twin.
    """

    __slots__ = ("_log", "_progress", "job")

    job: NewJob

    _log: list[JobLogLine]
    _progress: JobProgress | None

    @classmethod
    def of(cls, result: JobResult[..., Any], job: NewJob) -> Self:
        """Return `result` as one of an eager job that has said nothing yet."""
        made = object.__new__(cls)
        for field in fields(result):
            object.__setattr__(made, field.name, getattr(result, field.name))
        object.__setattr__(made, "_log", [])
        object.__setattr__(made, "_progress", None)
        object.__setattr__(made, "job", job)
        return made

    def again(self) -> Self:
        """Return a copy for an enqueue that made no job, because this one holds its key."""
        made = self.of(self, self.job)
        for name, value in {"_log": self._log, "_progress": self._progress}.items():
            object.__setattr__(made, name, value)
        object.__setattr__(made, "already_enqueued", True)
        return made

    def keep(self, batch: Batch, now: datetime) -> None:
        """Keep what the run has left to be written."""
        self._log.extend(_line(new, now) for new in batch.lines)
        for new in batch.progress:
            object.__setattr__(self, "_progress", _amount(new, now))

    @property
    def progress(self) -> JobProgress | None:
        """How far the job has come; None if it never said."""
        return self._progress

    @property
    def log_lines(self) -> list[JobLogLine]:
        """What the job has logged."""
        return self._log


def _amount(new: NewProgress, now: datetime) -> JobProgress:
    return JobProgress(
        done=new.done,
        total=new.total,
        message=new.message,
        reported_at=now - timedelta(seconds=new.ago),
        fence=new.fence,
    )


def _line(new: NewLine, now: datetime) -> JobLogLine:
    return JobLogLine(
        fence=new.fence,
        number=new.number,
        logged_at=now - timedelta(seconds=new.ago),
        level=new.level,
        logger=new.logger,
        message=new.message,
    )
