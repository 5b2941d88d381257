"""What is wrong now: a sentence each, what to do about it, and how much of it there is.

    for finding in findings(control.status()):
        print(finding.severity, finding.code, finding)

A rule is a function of the status alone; `RULES` lists them. `problems` are what fails a probe:
errors, and bounds that the caller gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jobqueue.engine import database_rules, job_rules
from jobqueue.engine.counts import numbered
from jobqueue.engine.finding import SEVERITIES, Finding, Severity
from jobqueue.engine.status import Status

__all__ = ["RULES", "Finding", "Severity", "findings", "notices", "problems"]

Rule = Callable[[Status], Iterator[Finding]]
RULES: Sequence[Rule] = (
    job_rules.unpromoted,
    job_rules.unreaped,
    job_rules.overdue,
    job_rules.late_schedules,
    job_rules.failing_schedules,
    job_rules.unserved,
    job_rules.unknown_tasks,
    job_rules.failed_bulk,
    job_rules.dead_letters,
    job_rules.failing_tasks,
    database_rules.open_transactions,
    database_rules.horizon,
    database_rules.dead_rows,
    database_rules.idle_slots,
    job_rules.drift,
    job_rules.versions,
    job_rules.hints,
    job_rules.paused,
    job_rules.late_rollups,
)
"""In the order in which findings of one severity are listed: what somebody decided comes late."""


def findings(current: Status) -> list[Finding]:
    """Return all that is wrong, the worst first."""
    found = [finding for rule in RULES for finding in rule(current)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def problems(
    current: Status,
    max_age: float | None = None,
    max_backlog: int | None = None,
    fail_on: Severity = "error",
) -> list[Finding]:
    """Return what fails a probe; an empty list means healthy.

    fail_on: the least severity that does.

    max_age: seconds that a ready job may wait, max_backlog: ready jobs; both without paused
    queues, which wait because somebody said so. A status that was counted less far than
    `max_backlog` cannot tell.
    """
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    found = [f for f in findings(current) if f.severity in failing]
    return [*found, *_over_bounds(current, max_age, max_backlog)]


def notices(current: Status, fail_on: Severity = "error") -> list[Finding]:
    """Return what an operator should know although no probe fails for it."""
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    return [f for f in findings(current) if f.severity not in failing]


def _over_bounds(
    current: Status, max_age: float | None, max_backlog: int | None
) -> Iterator[Finding]:
    age = current.oldest_claimable or 0
    if max_age is not None and age > max_age:
        yield Finding(
            code="too_old",
            severity="error",
            sentence=f"The oldest ready job has waited {age:.0f} s, more than {max_age:g} s.",
            way_out="",
            seconds=age,
        )
    if max_backlog is not None and current.backlog.value > max_backlog:
        yield Finding(
            code="too_many",
            severity="error",
            sentence=f"{numbered(current.backlog, 'job is', 'jobs are')} ready, more than "
            f"{max_backlog:,}.",
            way_out="",
            count=current.backlog,
        )
