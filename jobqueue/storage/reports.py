"""What running jobs say about themselves: progress and log lines, as methods of a storage.

Rows of their own, written on a connection that is no job's. Their writes match no guard: nobody's
run depends on them, and the fence in each row tells whose they are, a zombie's too. Each may be
sent again after a lost connection.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue.storage.records import NewLine, NewProgress


class ReportStorage:
    """The part of the protocol about reports."""

    def write_progress(self, rows: Sequence[NewProgress]) -> None:
        """Keep the last progress of each run. Those of jobs that are gone are left out."""
        raise NotImplementedError

    def write_lines(self, rows: Sequence[NewLine], keep: int) -> None:
        """Add log lines; of a run with more than `keep` drop those in the middle.

        Those of jobs that are gone are left out. `rows` holds no more than `keep` of a run.
        """
        raise NotImplementedError


def head_of(keep: int) -> int:
    """Return how many of the `keep` lines of a run are its first ones."""
    return keep // 2
