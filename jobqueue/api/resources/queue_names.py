"""Names of queues in requests: one that nobody knows is a slip, and would do nothing."""

from __future__ import annotations

from jobqueue import control
from jobqueue.api.problems import Problem
from jobqueue.conf import MAX_QUEUE_NAME_LENGTH

LISTED = 20


def require_queue(name: str, backend: str) -> None:
    """Raise Problem unless the settings name the queue, or somebody touched it, or it has jobs."""
    known = control.known_queues(backend)
    is_name = "\x00" not in name and len(name) <= MAX_QUEUE_NAME_LENGTH
    if name not in known and not (is_name and control.has_live_jobs(name, backend)):
        there_are = ", ".join(known[:LISTED]) or "none"
        raise Problem("not-found", f"There is no queue {name[:128]!r}; there are {there_are}.")
