"""What can be wrong with jobs, queues, tasks and workers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from jobqueue.conf import AUDIT_PATIENCE_SECONDS
from jobqueue.engine.counts import Count, numbered
from jobqueue.engine.finding import Finding, stopped
from jobqueue.engine.health import NEW_DEAD_LETTERS, NEW_DEAD_SECONDS, DeadlyError
from jobqueue.engine.obstacles import LETS_RUN
from jobqueue.engine.status import QueueStatus, Status

DEPLOY_SECONDS = 600.0
"""Two versions side by side are a deployment for so long, and then an omission."""
LATE_ROLLUPS_SECONDS = 300.0
"""An attempt may wait so long to be counted: as long as counting rests at most."""

# --- upkeep ----------------------------------------


def unpromoted(current: Status) -> Iterator[Finding]:
    """Due jobs that nobody makes ready."""
    age = current.oldest_unpromoted or 0
    if age > AUDIT_PATIENCE_SECONDS:
        yield Finding(
            code="unpromoted",
            severity="error",
            sentence=f"A due job has waited {age:.0f} s to become ready (bound "
            f"{AUDIT_PATIENCE_SECONDS:.0f} s): no worker or scheduler promotes it.",
            way_out="Start manage.py runworker.",
            seconds=age,
        )


def unreaped(current: Status) -> Iterator[Finding]:
    """Jobs of dead workers that nobody takes back."""
    age = current.oldest_unreaped or 0
    if age > AUDIT_PATIENCE_SECONDS:
        yield Finding(
            code="unreaped",
            severity="error",
            sentence=f"A job of a dead worker has waited {age:.0f} s to be taken back (bound "
            f"{AUDIT_PATIENCE_SECONDS:.0f} s): no reaper runs.",
            way_out="Start manage.py runworker or manage.py runreaper.",
            seconds=age,
        )


def overdue(current: Status) -> Iterator[Finding]:
    """Jobs past their deadline that nobody ends."""
    if current.health.overdue:
        yield Finding(
            code="overdue",
            severity="error",
            sentence=f"{_are(current.health.overdue, 'running job')} past the deadline, and no "
            "reaper ends what is.",
            way_out="Start manage.py runworker or manage.py runreaper.",
            count=Count(current.health.overdue),
        )


def late_rollups(current: Status) -> Iterator[Finding]:
    """Statistics that are not those of now."""
    late = current.health.rollups_late
    if late > LATE_ROLLUPS_SECONDS:
        yield Finding(
            code="statistics_late",
            severity="info",
            sentence=f"The statistics are {late:.0f} s old: schedulers are behind, or none runs.",
            way_out="After a burst they catch up. Else start manage.py runworker.",
            seconds=late,
        )


def late_schedules(current: Status) -> Iterator[Finding]:
    """Schedules that are due, and nobody ticks."""
    names = current.late_schedules
    if names:
        yield Finding(
            code="schedules_late",
            severity="error",
            sentence=f"Schedules are due, and nobody ticks: {', '.join(names[:5])} (bound "
            f"{AUDIT_PATIENCE_SECONDS:.0f} s).",
            way_out="Start manage.py runscheduler or a worker without --no-maintenance.",
            subject=names[0],
            count=Count(len(names)),
        )


def failing_schedules(current: Status) -> Iterator[Finding]:
    """Schedules that cannot tick."""
    for name, error in current.failing_schedules.items():
        yield Finding(
            code="schedule_failing",
            severity="warning",
            sentence=f"Schedule {name!r} cannot tick: {stopped(error)}",
            way_out="Correct the schedule, or disable it.",
            subject=name,
        )


# --- queues and workers ----------------------------------------


def paused(current: Status) -> Iterator[Finding]:
    """Queues from which nothing is claimed."""
    for queue in current.queues:
        if queue.paused:
            yield Finding(
                code="queue_paused",
                severity="warning" if queue.ready else "info",
                sentence=f"Queue {queue.name} is paused by {queue.paused_by}"
                f"{_paused_ago(current, queue)}: "
                f"{queue.paused_reason or 'no reason'}; "
                f"{numbered(queue.ready, 'job waits', 'jobs wait')} in it.",
                way_out=f"To resume it, once that is over: manage.py jobs resume "
                f"{shlex.quote(queue.name)}.",
                subject=queue.name,
                queue=queue.name,
                count=queue.ready,
                seconds=queue.oldest_ready_seconds,
            )


def _paused_ago(current: Status, queue: QueueStatus) -> str:
    since = queue.paused_at
    if since is None or (since.tzinfo is None) != (current.as_of.tzinfo is None):
        return ""
    return f" ({_ago((current.as_of - since).total_seconds())})"


def unserved(current: Status) -> Iterator[Finding]:
    """Ready jobs that no live worker would take."""
    served = current.health.served_queues
    if served is not None and not served and not current.health.crews:
        waits = (current.oldest_claimable or 0) > AUDIT_PATIENCE_SECONDS
        yield Finding(
            code="no_worker",
            severity="error" if waits else "warning",
            sentence=f"No worker is alive{_last_one(current)}.",
            way_out="Start one with manage.py runworker.",
            count=current.backlog,
        )
        return
    for queue in current.queues:
        if _waits_in_vain(queue) and served is not None and queue.name not in served:
            yield Finding(
                code="queue_unserved",
                severity="warning",
                sentence=f"No live worker takes jobs from queue {queue.name}, where "
                f"{numbered(queue.ready, 'job is', 'jobs are')} ready.",
                way_out=f"Start one with manage.py runworker --queues {shlex.quote(queue.name)}.",
                subject=queue.name,
                queue=queue.name,
                count=queue.ready,
                seconds=queue.oldest_ready_seconds,
            )


def _last_one(current: Status) -> str:
    beats = [each.heartbeat_seconds for each in current.workers if each.kind == "worker"]
    deaths = [each.seconds for each in current.dead_workers if each.kind == "worker"]
    ages = [*beats, *deaths]
    return f": the last one was seen {_ago(min(ages))}" if ages else ""


def _ago(seconds: float) -> str:
    minutes = round(seconds / 60)
    if not minutes:
        return f"{seconds:.0f} s ago"
    return f"{minutes} min ago" if minutes < 120 else f"{minutes // 60} h ago"


def _waits_in_vain(queue: QueueStatus) -> bool:
    return not queue.paused and (queue.oldest_ready_seconds or 0) > AUDIT_PATIENCE_SECONDS


def unknown_tasks(current: Status) -> Iterator[Finding]:
    """Jobs of tasks that no live worker has."""
    if current.unknown_tasks:
        total = sum(current.unknown_tasks.values(), Count(0))
        yield Finding(
            code="unknown_tasks",
            severity="warning",
            sentence=f"{_are(total, 'job')} blocked: no live worker has such a task.",
            way_out="Restart or deploy a worker that has it, or cancel what waits for it.",
            subject=", ".join(list(current.unknown_tasks)[:5]),
            count=total,
        )


def drift(current: Status) -> Iterator[Finding]:
    """Workers whose clock is off."""
    for drift in current.health.drifts:
        ahead = "ahead of" if drift.seconds > 0 else "behind"
        yield Finding(
            code="clock_drift",
            severity="warning",
            sentence=f"The clock of worker {drift.name} on {drift.host} is "
            f"{abs(drift.seconds):.1f} s {ahead} the database's.",
            way_out="Let the host keep time (NTP): jobs there compute wrong times.",
            subject=drift.name,
            seconds=abs(drift.seconds),
        )


def versions(current: Status) -> Iterator[Finding]:
    """Workers that a deployment has left out."""
    crews = current.health.crews
    if len(crews) > 1 and all(crew.seconds > DEPLOY_SECONDS for crew in crews):
        listed = ", ".join(f"{crew.version or 'unknown'} ({crew.workers})" for crew in crews)
        yield Finding(
            code="version_drift",
            severity="warning",
            sentence=f"Workers run different versions side by side: {listed}.",
            way_out="Restart the workers that a deployment has left out.",
            count=Count(sum(crew.workers for crew in crews)),
            seconds=min(crew.seconds for crew in crews),
        )


def hints(current: Status) -> Iterator[Finding]:
    """Hints that cannot be sent."""
    if current.health.hints_error:
        yield Finding(
            code="hints_failing",
            severity="warning",
            sentence=f"Hints over {current.hints} cannot be sent: "
            + stopped(current.health.hints_error),
            way_out="Look after Redis, or set HINTS. Until then jobs start at the next poll.",
            subject=current.hints,
        )


# --- failures ----------------------------------------


def dead_letters(current: Status) -> Iterator[Finding]:
    """Many jobs that died lately; the way out takes those of one error, and not all at once."""
    new, worst = current.health.new_dead, current.health.deadly
    if new.value < NEW_DEAD_LETTERS:
        return
    way_out = "Look at why they died."
    if worst is not None:
        way_out = (
            "Once its cause is gone, requeue the jobs of that error alone, over ten minutes: "
            "manage.py jobs bulk start requeue state:dead "
            f"fingerprint:{worst.fingerprint} --spread 10m."
        )
    yield Finding(
        code="dead_letters",
        severity="warning",
        sentence=f"{numbered(new, 'job')} died within the last {NEW_DEAD_SECONDS / 60:.0f} min "
        f"and will not run by themselves{_most(worst, new)}.",
        way_out=way_out,
        subject=worst.fingerprint if worst else "",
        queue=worst.queue if worst else "",
        count=new,
    )


def _most(worst: DeadlyError | None, new: Count) -> str:
    if worst is None:
        return ""
    of_these = "them" if worst.looked_at >= new.value else f"the newest {worst.looked_at:,}"
    return f": {worst.jobs:,} of {of_these} of {worst.error_class} in {worst.task}"


def failed_bulk(current: Status) -> Iterator[Finding]:
    """Bulk operations that have given up."""
    for bulk in current.health.failed_bulk:
        gone = "the cause of that and of its jobs' error" if bulk.verb in LETS_RUN else "that"
        yield Finding(
            code="bulk_failed",
            severity="warning",
            sentence=f"Bulk operation {bulk.number} ({bulk.verb.replace('_', '-')}) has failed "
            f"with {numbered(bulk.left, 'job')} left: its last step was {_ago(bulk.seconds)}.",
            way_out=f"It says why: manage.py jobs bulk show {bulk.number}. Once {gone} is gone: "
            f"manage.py jobs bulk resume {bulk.number}.",
            subject=str(bulk.number),
            count=bulk.left,
            seconds=bulk.seconds,
        )


def failing_tasks(current: Status) -> Iterator[Finding]:
    """Tasks that fail more often than not."""
    for task in current.health.failing:
        if task.is_failing:
            queue = shlex.quote(task.queue)
            yield Finding(
                code="task_failing",
                severity="error" if task.failed == task.attempts else "warning",
                sentence=f"{task.failed:,} of {numbered(task.attempts, 'attempt')} of "
                f"{task.task} failed in the last 10 min.",
                way_out="Look at its errors; if it does harm, pause its queue"
                + (f": manage.py jobs pause {queue}." if task.queue else "."),
                subject=task.task,
                queue=task.queue,
                count=Count(task.failed),
            )


def _are(count: int | Count, noun: str) -> str:
    return numbered(count, f"{noun} is", f"{noun}s are")
