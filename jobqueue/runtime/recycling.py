"""When a worker process makes room for a new one: after so many jobs, beyond so much memory, or
because a file of its code has changed.

It claims nothing more, ends the jobs in hand, and exits; its supervisor starts another as soon as
it sees that this one leaves. Nobody is blamed, and no job is cut off.

Bounds: a process runs at most `max_jobs` jobs. Memory and files are looked at once a second, and
memory only once a job was taken: a limit below what an empty process needs would otherwise start
processes for ever and run nothing.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from jobqueue.engine.counts import numbered
from jobqueue.runtime.code_files import CodeFiles

LOOK_SECONDS = 1.0
_STATM = Path("/proc/self/statm")


class Recycling:
    """What one worker process may still take on. Limits are None where there is none.

    code: is asked whether the process's code has changed; None: nobody asks.
    """

    def __init__(
        self,
        max_jobs: int | None = None,
        max_memory_bytes: int | None = None,
        code: CodeFiles | None = None,
    ) -> None:
        self._max_jobs = max_jobs
        self._max_memory_bytes = max_memory_bytes
        self._code = code
        self._taken = 0
        self._look_at = 0.0

    def room(self, wanted: int) -> int:
        """Return how many of `wanted` jobs may be taken."""
        return wanted if self._max_jobs is None else min(wanted, self._max_jobs - self._taken)

    def took(self, count: int) -> None:
        """Note jobs that this process has taken; negative: given back without having started."""
        self._taken += count

    def why(self) -> str:
        """Return why this process is to be replaced; "" while it is not."""
        if self._max_jobs is not None and self._taken >= self._max_jobs:
            return f"it has taken {numbered(self._taken, 'job')}"
        if self._max_memory_bytes is None and self._code is None:
            return ""
        now = time.monotonic()
        if now < self._look_at:
            return ""
        self._look_at = now + LOOK_SECONDS
        return self._memory() or self._changed_code()

    def _memory(self) -> str:
        if self._max_memory_bytes is None or not self._taken:
            return ""
        used = memory_bytes()
        limit = self._max_memory_bytes
        return f"it holds {used >> 20} MiB of memory" if used > limit else ""

    def _changed_code(self) -> str:
        changed = self._code.changed() if self._code is not None else None
        return f"{changed} has changed" if changed else ""


def memory_bytes() -> int:
    """Return what this process holds in memory; where the system does not say, its peak."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024  # bytes there, KiB elsewhere
    return pages * resource.getpagesize()
