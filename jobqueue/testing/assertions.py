"""What was enqueued: under the real backend (rows), an eager one, or a dummy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS, Task, task_backends
from jobqueue.conf import options_for
from jobqueue.payload import round_trip


def enqueued(
    task: Task[..., Any] | None = None, *, alias: str = DEFAULT_TASK_BACKEND_ALIAS
) -> list[Any]:
    """Return the results of all jobs of `task` (else of any task of TASKS alias `alias`).

    In the order of their enqueue, whatever has become of them; also of the caller's transaction.
    """
    alias = alias if task is None else task.backend
    backend: Any = task_backends[alias]
    if hasattr(backend, "results"):
        found = [result for result in backend.results if result.backend == alias]
    else:
        found = [backend.get_result(str(job_id)) for job_id in _job_ids(alias)]
    if task is None:
        return found
    return [result for result in found if result.task.module_path == task.module_path]


def assert_enqueued(
    task: Task[..., Any],
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue_name: str | None = None,
    priority: int | None = None,
    tags: Collection[str] | None = None,
    count: int | None = None,
) -> list[Any]:
    """Return the results of the jobs of `task` with these arguments and options.

    None matches anything; args and kwargs are compared as JSON; tags are a part of the job's.
    Raise AssertionError, with what was enqueued, if there is none, or not exactly `count`.
    """
    all_of_task = enqueued(task)
    limit = options_for(task.backend).max_arguments_bytes
    wanted_args = None if args is None else round_trip(list(args), limit)
    wanted_kwargs = None if kwargs is None else round_trip(dict(kwargs), limit)
    found = [
        result
        for result in all_of_task
        if (wanted_args is None or result.args == wanted_args)
        and (wanted_kwargs is None or result.kwargs == wanted_kwargs)
        and (queue_name is None or result.task.queue_name == queue_name)
        and (priority is None or result.task.priority == priority)
        and (tags is None or set(tags) <= set(result.task.tags))
    ]
    if not found if count is None else len(found) != count:
        wanted = "a job" if count is None else f"{count} jobs"
        raise AssertionError(
            f"Expected {wanted} of {task.module_path} to be enqueued like that; found {len(found)}."
            f" All jobs of this task: {[_described(result) for result in all_of_task]}"
        )
    return found


def _described(result: Any) -> str:
    return f"{result.args} {result.kwargs} in {result.task.queue_name!r}"


def _job_ids(alias: str) -> list[Any]:
    from jobqueue.models import Job

    jobs = Job.objects.using(options_for(alias).database).filter(backend=alias)
    return list(jobs.order_by("enqueued_at", "id").values_list("pk", flat=True))
