"""What one run of a job is, and how far it has come: shared by its context, blocks and steps."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass, field

from jobqueue.engine.environment import Environment
from jobqueue.engine.reports import Report
from jobqueue.storage.records import Claim


@dataclass(slots=True)
class RunState:
    """One run of one claim.

    claim: the identity and fence that every guard of this run uses. started: monotonic seconds.
    commit_result: JSON text given to ``context.commit`` in the open block. committed: that block
    has committed, so the job has succeeded. abandoned: the beat found the row no longer ours.
    report: what the run has said of itself, if it ever did.
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

    @property
    def age_seconds(self) -> float:
        """Seconds since the run started, by the worker's monotonic clock."""
        return time.monotonic() - self.started


current_run: ContextVar[RunState | None] = ContextVar("jobqueue_run", default=None)
"""The run whose code this is: set in the context that a job runs in, and in no other."""
