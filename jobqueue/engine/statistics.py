"""What admin, API, page and shell show about what was done: the one list of it.

    from jobqueue.engine import statistics

    statistics.totals(3600)                    # how many, how fast, how many failed
    statistics.throughput(3600, by="queue")    # a line a queue
    statistics.latency(3600, by="task")        # p50, p95, p99 of waiting and running
    statistics.worker_rates()                  # attempts a minute
    statistics.error_groups(86_400)            # what fails, and how often

All is read from rollups (`jobqueue.engine.rollups`), some thousand small rows at most, however many
jobs there were. Every answer says as of when it is: rollups are some seconds old, and minutes
behind a burst. What is counted are attempts that ended; a job that was retried counts once for
each. Periods end now and begin with a whole step; the last step is still open. Times are UTC.
"""

from jobqueue.engine.counts import Count, capped_count
from jobqueue.engine.error_groups import ErrorGroups, ErrorLine, error_group, error_groups
from jobqueue.engine.latency import (
    Latency,
    LatencySeries,
    Spread,
    Totals,
    latency,
    latency_series,
    totals,
)
from jobqueue.engine.throughput import Line, Series, WorkerRate, throughput, worker_rates

__all__ = [
    "Count",
    "ErrorGroups",
    "ErrorLine",
    "Latency",
    "LatencySeries",
    "Line",
    "Series",
    "Spread",
    "Totals",
    "WorkerRate",
    "capped_count",
    "error_group",
    "error_groups",
    "latency",
    "latency_series",
    "throughput",
    "totals",
    "worker_rates",
]
