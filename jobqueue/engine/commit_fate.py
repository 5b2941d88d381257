"""Finding out what became of a COMMIT whose answer was lost with its connection.

What a process leaves behind that dies here: what it asked about, as it is. Nothing was written.
"""

from __future__ import annotations

import logging
import random
import time
from typing import Literal

from django.db import DatabaseError, InterfaceError

from jobqueue.engine.environment import Environment
from jobqueue.events import emit
from jobqueue.states import Outcome
from jobqueue.storage import Storage
from jobqueue.storage.records import Claim

logger = logging.getLogger("jobqueue")

CommitVerdict = Literal["committed", "not committed", "lease lost"]

END_SESSION_SECONDS = 10.0
"""How long to wait for a session that was told to end; its idle time-out is shorter."""


def resolve_unknown_commit(
    environment: Environment, claim: Claim, pid: int | None
) -> CommitVerdict:
    """Return whether the transaction that finished `claim` on the lost session `pid` committed.

    Asks on new connections until it knows, or until this process has lost its lease. Our attempt
    row is the witness. Without one, and the guard still matching, the finish and COMMIT may still
    be queued in the old session: it is ended, and gone, before the answer is "not committed".
    """
    pause = 0.05
    while environment.is_alive():
        try:
            with environment.fresh_storage() as storage:
                verdict = _look(storage, claim)
                if verdict == "not committed" and pid is not None and environment.direct:
                    if not _end_session(storage, pid, claim):
                        continue
                    verdict = _look(storage, claim)
            emit("job.commit_resolved", job=claim.id, fence=claim.fence, verdict=verdict)
            return verdict
        except (DatabaseError, InterfaceError) as error:
            logger.debug("Cannot ask for the fate of job %s yet: %s", claim.id, error)
            time.sleep(pause * (0.5 + random.random()))
            pause = min(pause * 2, 1.0)
    return "lease lost"


def _look(storage: Storage, claim: Claim) -> CommitVerdict:
    verdict = storage.verdict(claim)
    if verdict.outcome == Outcome.SUCCEEDED:
        return "committed"
    if verdict.outcome is not None or not verdict.still_ours:
        return "lease lost"
    return "not committed"


def _end_session(storage: Storage, pid: int, claim: Claim) -> bool:
    """End the old session and wait until it is gone; return whether it is."""
    until = time.monotonic() + END_SESSION_SECONDS
    while not storage.end_session(pid, claim.worker):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
