"""What would keep jobs from running, or let them fail: told before somebody lets them run."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass

from jobqueue.conf import options_for
from jobqueue.engine.health import TaskFailures, task_failures
from jobqueue.engine.status import leases_left
from jobqueue.filters import Filter
from jobqueue.models import ErrorGroup, Queue

MAX_ERRORS = 5
"""Errors of one filter that are named."""
LETS_RUN = frozenset({"requeue", "run_now", "reschedule"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacles:
    """Whether no worker is alive, which queues are paused, which tasks fail; each by name."""

    no_worker: bool = False
    paused: Sequence[Queue] = ()
    failing: Sequence[TaskFailures] = ()


def obstacles(
    verb: str, tasks: Collection[str], queues: Collection[str], backend: str
) -> Obstacles:
    """Return why jobs of these tasks and queues would not run now, or would fail.

    None where the verb lets no job run. Nothing is said of other tasks and queues.
    """
    if verb not in LETS_RUN:
        return Obstacles()
    database = options_for(backend).database
    paused = Queue.objects.using(database).filter(paused=True, name__in=queues)
    return Obstacles(
        no_worker=no_worker(backend),
        paused=list(paused.order_by("name")),
        failing=failing(tasks, database),
    )


def obstacles_of_filter(
    verb: str, chosen: Filter, errors: Iterable[ErrorGroup], backend: str
) -> Obstacles:
    """Return the same of a filter, without looking for its jobs.

    So it is said of the tasks and queues that the filter names, and of those of its errors alone.
    """
    found = [(error.task, error.queue) for error in errors]
    tasks = {*_named(chosen, "task"), *(task for task, _queue in found)}
    queues = {*_named(chosen, "queue"), *(queue for _task, queue in found)}
    return obstacles(verb, tasks, queues, backend)


def no_worker(backend: str) -> bool:
    """Return whether no process is alive that runs jobs."""
    return all(left < 0 for left in leases_left(backend).values())


def failing(tasks: Container[str], database: str) -> list[TaskFailures]:
    """Return which of these tasks have failed more often than not of late."""
    return [task for task in task_failures(database) if task.task in tasks and task.is_failing]


def errors_of(chosen: Filter, database: str) -> list[ErrorGroup]:
    """Return the errors that a filter names, those seen last first."""
    named = fingerprints(chosen)
    groups = ErrorGroup.objects.using(database).filter(pk__in=named)
    return list(groups.order_by("-last_seen")[:MAX_ERRORS]) if named else []


def fingerprints(chosen: Filter) -> list[str]:
    """Return the fingerprints of errors by which a filter chooses jobs."""
    return _named(chosen, "fingerprint")


def _named(chosen: Filter, key: str) -> list[str]:
    return [value.text for term in chosen.of(key) if not term.is_negated for value in term.values]
