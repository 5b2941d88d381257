"""What one run of a job is, and how far it has come: shared by its context, blocks and steps."""

from __future__ import annotations

import asyncio
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import IntEnum

from jobqueue.conf import Options, job_options
from jobqueue.engine.environment import Environment
from jobqueue.engine.reports import Report
from jobqueue.storage.records import Claim


class Stop(IntEnum):
    """Why the code of a run was stopped from outside; a greater one overrules."""

    ASKED = 1
    """Somebody asked for it to be cancelled."""
    TIME_LIMIT = 2
    ABANDONED = 3
    """The job was taken from the run: nothing of it can be written any more."""


@dataclass(slots=True)
class RunState:
    """One run of one claim.

    claim: the identity and fence that every guard of this run uses. started: monotonic seconds.
    commit_result: JSON text given to ``context.commit`` in the open block. committed: that block
    has committed, so the job has succeeded. abandoned: the beat found the row no longer ours.
    cancel_reason: why it should be cancelled, if somebody asked. report: what the run has said of
    itself, if it ever did.

    The others belong to `jobqueue.engine.interrupts`. target: the thread (its ident) or task whose
    code may be interrupted now. sending, sent: what is on its way, or was. stopped: why the code
    was interrupted.
    """

    claim: Claim
    environment: Environment
    in_atomic_task: bool
    started: float = field(default_factory=time.monotonic)
    in_block: bool = False
    commit_result: str | None = None
    committed: bool = False
    abandoned: bool = False
    report: Report | None = None
    cancel_reason: str | None = None
    target: int | asyncio.Task[None] | None = None
    sending: bool = False
    sent: Stop | None = None
    stopped: Stop | None = None

    @property
    def options(self) -> Options:
        """The options of the alias that the job was enqueued under, if it is still there."""
        return job_options(self.claim.backend, self.environment.options)

    @property
    def age_seconds(self) -> float:
        """Seconds since the run started, by the worker's monotonic clock."""
        return time.monotonic() - self.started


current_run: ContextVar[RunState | None] = ContextVar("jobqueue_run", default=None)
"""The run whose code this is: set in the context that a job runs in, and in no other."""
