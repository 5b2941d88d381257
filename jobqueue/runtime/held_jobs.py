"""What a worker process holds: its claims, and the runs of those that have started.

Written by the fetch loop and the slots, asked by the beat and the watchdog; each looks at a copy
made in one step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from jobqueue.engine.runs import Run
from jobqueue.events import emit
from jobqueue.storage.records import Fenced


class HeldJobs(dict[UUID, tuple[int, Run | None]]):
    """By the job's id: the fence of the claim, and the run once there is one.

    drain: what ends the process once nothing is held any more.
    """

    def __init__(self, drain: Callable[[], None]) -> None:
        super().__init__()
        self.drain = drain

    def held(self) -> set[Fenced]:
        """Return the jobs (id, fence) that this process holds."""
        return {(job_id, fence) for job_id, (fence, _) in self.copy().items()}

    def runs(self) -> list[Run]:
        """Return the runs, also those that have ended and are not yet written."""
        return [run for _, run in self.copy().values() if run is not None]

    def abandon(self, fenced: Fenced) -> None:
        """Tell the run of a job that its row is no longer ours; the watchdog stops it."""
        run = self._run(fenced)
        if run is None or run.state.abandoned:
            return  # it has not started, and finds out when it ends; or it was told: each beat asks
        if run.state.committed:
            return  # the job has succeeded, by its own commit, and goes on a while
        run.state.abandoned = True
        emit("job.abandoned", level=logging.WARNING, job=fenced[0], fence=fenced[1])

    def ask_to_stop(self, fenced: Fenced, reason: str) -> None:
        """Tell the run of a job that somebody asked for it to be cancelled."""
        run = self._run(fenced)
        if run is not None and run.state.cancel_reason is None:
            run.state.cancel_reason = reason
            emit("job.asked_to_stop", job=fenced[0], fence=fenced[1], reason=reason)

    def _run(self, fenced: Fenced) -> Run | None:
        fence, run = self.get(fenced[0], (0, None))
        return run if fence == fenced[1] else None
