"""Exit codes of the commands that run until told to stop; documented in the reference."""

CLEAN = 0
"""Stopped as asked, every job in hand ended; or nothing was left to do (--until-empty)."""
ABORTED = 1
"""Stopped with jobs cut off: second signal, or the grace was over. They run again elsewhere."""
RECYCLED = 3
"""A worker process made room for a new one: --max-jobs, --max-memory, --reload."""
LEASE_LOST = 75
"""A worker process found that it is dead to the others (sysexits EX_TEMPFAIL)."""
MISCONFIGURED = 78
"""Settings or a module with tasks cannot be loaded (sysexits EX_CONFIG)."""
