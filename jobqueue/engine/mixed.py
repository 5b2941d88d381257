"""Jobs of several tasks in the caller's transaction, in as few statements as their kinds need.

Jobs without a unique key go in chunks, whatever their tasks and options; those with one per task
and rule, in the order of the tasks' names, and each kind in the order of its keys: two batches meet
keys that they share in one order.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from jobqueue import compat
from jobqueue.conf import options_for
from jobqueue.engine.announce import announce
from jobqueue.engine.enqueue import in_chunks, new_jobs
from jobqueue.engine.loading import load_results, marked, new_result
from jobqueue.engine.uniqueness import insert_unique
from jobqueue.results import JobResult
from jobqueue.states import State
from jobqueue.storage import Storage
from jobqueue.storage.records import Inserted, NewJob
from jobqueue.tasks import JobTask
from jobqueue.unique import RESCHEDULE

Results = list[JobResult[..., Any]]


@dataclass(frozen=True, slots=True)
class Order:
    """One job to make: the task with its options, and its row."""

    task: JobTask[..., Any]
    job: NewJob

    @classmethod
    def of(
        cls, task: JobTask[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], alias: str
    ) -> Order:
        """Return the order; raise TypeError or ValueError for a call that cannot travel."""
        (job,) = new_jobs(task, [(args, kwargs)], alias, options_for(alias))
        return cls(task, job)


def place(storage: Storage, orders: Sequence[Order]) -> Results:
    """Make the jobs, or find their twins; return the results in order. Hints go out at commit.

    The ids ascend with the orders: equals in rank run in that order. Raise KeyBusy as an enqueue.
    """
    orders = _ascending(orders)
    rows = _inserted(storage, orders)
    for order in orders:
        row = rows[order.job.id][1]
        is_own = row.id == order.job.id
        if row.state == State.READY and (is_own or _rule(order.task) == RESCHEDULE):
            announce(storage.connection, order.job.backend, [order.job.queue])
    return _results(orders, rows)


def announce_enqueued(results: Results) -> None:
    """Send task_enqueued for each job that was made, if anybody listens."""
    if not compat.signal_is_heard(compat.task_enqueued, logging.DEBUG):
        return
    for result in results:
        backend: Any = result.task.get_backend()
        backend.announce([result])


def _ascending(orders: Sequence[Order]) -> list[Order]:
    ids = sorted(order.job.id for order in orders)
    return [replace(o, job=replace(o.job, id=n)) for o, n in zip(orders, ids, strict=True)]


def _rule(task: JobTask[..., Any]) -> str:
    return "" if task.unique is None else task.unique.on_conflict


def _inserted(storage: Storage, orders: Sequence[Order]) -> dict[UUID, tuple[NewJob, Inserted]]:
    """Return, by the id of the order's job, what was inserted and the row that stands for it."""
    kinds: dict[tuple[str, str], list[NewJob]] = {}
    for order in orders:
        rule = _rule(order.task)
        kinds.setdefault((order.job.task if rule else "", rule), []).append(order.job)
    rows: dict[UUID, tuple[NewJob, Inserted]] = {}
    for (_, rule), jobs in sorted(kinds.items()):
        if rule:
            placed = insert_unique(storage, jobs, rule, in_chunks)
        else:
            inserted = [row for chunk in in_chunks(jobs) for row in storage.insert_jobs(chunk)]
            placed = list(zip(jobs, inserted, strict=True))
        rows.update(zip((job.id for job in jobs), placed, strict=True))
    return rows


def _results(orders: Sequence[Order], rows: Mapping[UUID, tuple[NewJob, Inserted]]) -> Results:
    new = {
        order.job.id: new_result(order.task, *rows[order.job.id])
        for order in orders
        if rows[order.job.id][1].id == order.job.id
    }
    found = {order.job.id: rows[order.job.id][1].id for order in orders}
    twins = load_results([i for i in found.values() if i not in new], orders[0].job.backend)
    return [
        new[order.job.id]
        if order.job.id in new
        else marked(new.get(found[order.job.id]) or twins[found[order.job.id]])
        for order in orders
    ]
