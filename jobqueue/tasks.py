"""The task class and its decorator: what a function says about the jobs that run it.

    from jobqueue import task

    @task(queue_name="mail", max_attempts=8, timeout=30, takes_context=True)
    def send_receipt(context, order_id): ...

Options, beside Django's `priority`, `queue_name`, `backend` and `takes_context`:

max_attempts  failed or timed-out attempts before the job is a dead letter; a whole number from 1,
              or "unlimited". Default: MAX_ATTEMPTS of the alias.
retry         delay before a retry: a `Backoff`, its keywords as a dict, or any callable
              (number, exception or None) -> seconds. Default: RETRY of the alias.
timeout       seconds (or timedelta) that one attempt may run. Default: TIMEOUT of the alias.
soft_timeout  seconds (or timedelta) after which TimeLimitExceeded is raised in the code already,
              to leave it time to clean up. Default: at the timeout.
atomic        the function's writes and the job's completion are one transaction. Default: True
              for ``def``; an ``async def`` cannot be atomic.
on_crash      "retry" (default), or "bury": never run again after one lost worker.
expose        surfaces that offer the task for enqueueing by hand: "staff", "api". Default: none.
unique        which jobs are twins, of which only one waits: True (equal arguments), the names of
              some arguments, a callable that makes a key of them, or a `Unique` (or its keywords
              as a dict) for all of its rules. Default: none are.
unique_key    the key itself, instead of one made of the arguments. Usually given by `using()`.
expires       timedelta from the enqueue in which a job must start: no attempt starts after it, and
              a job that still waits is cancelled. Default: never. `using()` takes a datetime, too.
limit         how many jobs of a key run at once, and start in a period, across all workers: a
              number, or a `Limit` (`jobqueue.limits`). Default: none.
tags          texts that find the job later, such as "order:42". Usually given by `using()`.

Under another backend (Immediate, Dummy) these options are carried and ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import partial
from inspect import iscoroutinefunction
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypedDict,
    Unpack,
    cast,
    overload,
)

from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone
from django.utils.module_loading import import_string

from jobqueue.compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    Task,
    task_backends,
)
from jobqueue.conf import UNLIMITED, Options
from jobqueue.engine import definitions
from jobqueue.engine.arguments import check_call
from jobqueue.engine.keys import checked_key
from jobqueue.engine.registry import as_job_task, autodiscover, registry
from jobqueue.limits import Limit
from jobqueue.retry import RetryPolicy
from jobqueue.unique import Unique, UniqueKey

if TYPE_CHECKING:
    from jobqueue.results import JobResult

MaxAttempts = int | Literal["unlimited"]

if TYPE_CHECKING:

    class _FrameworkTask[**P, R](Task[P, R]):
        """`Task` is generic for type checkers and in the backport, but not in Django itself."""

else:

    class _FrameworkTask[**P, R](Task):
        __slots__ = ()


class Call(NamedTuple):
    """The arguments of one job for `enqueue_many`; `JobTask.bind` makes it, type-checked."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTask[**P, R](_FrameworkTask[P, R]):
    """A function and how its jobs are run; see the module docstring for the options.

    Immutable; `using()` makes variants. Two tasks are equal if function and all options are.
    Calling the function itself is `task.func(...)` or Django's `task.call(...)`.
    """

    # Django 6.0 gives its own fields no defaults.
    priority: int = DEFAULT_TASK_PRIORITY
    backend: str = DEFAULT_TASK_BACKEND_ALIAS
    queue_name: str = DEFAULT_TASK_QUEUE_NAME
    run_after: datetime | timedelta | None = None  # type: ignore[assignment]
    takes_context: bool = False
    max_attempts: MaxAttempts | None = None
    retry: RetryPolicy | None = field(default=None, hash=False)  # a user's may be unhashable
    timeout: float | None = None
    soft_timeout: float | None = None
    atomic: bool = cast(bool, None)  # decided by the function where it is not given
    on_crash: str = "retry"
    expose: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()
    expires: datetime | timedelta | None = None
    unique: Unique | None = None
    unique_key: str | None = None
    limit: Limit | None = field(default=None, hash=False)  # its key may be unhashable
    limit_key: str | None = None
    is_async: bool = field(init=False, default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        definitions.check_function(self.func)
        object.__setattr__(self, "is_async", iscoroutinefunction(self.func))
        changes = {
            "max_attempts": definitions.max_attempts_option(self.max_attempts),
            "retry": definitions.retry_option(self.retry),
            "timeout": definitions.timeout_option(self.timeout),
            "soft_timeout": definitions.soft_timeout_option(self.soft_timeout, self.timeout),
            "atomic": definitions.atomic_option(self.atomic, self.is_async),
            "on_crash": definitions.on_crash_option(self.on_crash),
            "expose": definitions.expose_option(self.expose),
            "tags": definitions.tags_option(self.tags),
            "limit": definitions.limit_option(self.limit, self.func, self.takes_context),
            "run_after": self._checked_run_after(),
            "unique": definitions.unique_option(self.unique, self.func, self.takes_context),
        }
        if self.unique_key is not None:
            changes["unique_key"] = checked_key(self.unique_key)
            changes["unique"] = changes["unique"] or Unique()
        if self.expires is not None:
            definitions.check_expires(self.expires, self.run_after)
        for name, value in changes.items():
            object.__setattr__(self, name, value)
        definitions.limit_key_option(self.limit_key, self.limit)
        # super() without arguments means another class here: slots=True makes a new one.
        Task.__post_init__(self)
        registry.add(self)

    def _checked_run_after(self) -> datetime | timedelta | None:
        """Return run_after; other backends get the time, as they know no timedelta."""
        if self.run_after is None:
            return None
        definitions.check_run_after(self.run_after)
        if isinstance(self.run_after, timedelta) and not takes_delays(self.get_backend()):
            return timezone.now() + self.run_after
        return self.run_after

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        max_attempts: MaxAttempts | None = None,
        tags: Collection[str] | None = None,
        expires: datetime | timedelta | None = None,
        unique: Unique | UniqueKey | bool | None = None,
        unique_key: str | None = None,
        limit_key: str | None = None,
    ) -> Self:
        """Return this task with other options; None leaves an option as it is.

        run_after: not before this time, or this long after the enqueue by the database's clock.
        expires: no attempt starts after this time, or this long after the enqueue.
        tags: replace the task's own. unique_key: the key of these jobs, instead of one made of
        their arguments. unique: other rules, or False: not unique. limit_key: instead of what the
        `key` of its limit gives.

        Raise InvalidTask, InvalidRunAfter, InvalidExpires or InvalidUniqueKey.
        """
        given: dict[str, Any] = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
            "max_attempts": max_attempts,
            "tags": tags,
            "expires": expires,
            "unique": unique,
            "unique_key": unique_key,
            "limit_key": limit_key,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        if unique is False:
            changes["unique_key"] = None
        return replace(self, **changes)

    def attempts_allowed(self, options: Options) -> int | None:
        """Return how many failed attempts a job of this task has; None: as many as it takes."""
        given = options.max_attempts if self.max_attempts is None else self.max_attempts
        return None if given == UNLIMITED else cast(int | None, given)

    def timeout_seconds(self, options: Options) -> float:
        """Return how long one attempt may run."""
        return options.timeout if self.timeout is None else self.timeout

    def key_for(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """Return the key under which a job with these arguments is limited, None if it is not."""
        if self.limit is None:
            return None
        return definitions.limit_key_of(
            self.limit, self.limit_key, self.func, self.takes_context, args, kwargs
        )

    def bind(self, /, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Return the arguments of one job, for `enqueue_many`. Raise TypeError if they misfit."""
        check_call(self.func, self.takes_context, args, kwargs)
        return Call(args, kwargs)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobResult[P, R]:
        """Make a job in the caller's transaction and return its result, which is READY.

        Raise TypeError if the function does not take the arguments or JSON cannot hold them,
        ValueError for a value that cannot travel; nothing reaches the database then.
        """
        return self.get_backend().enqueue(self, args, kwargs)  # type: ignore[arg-type,return-value]

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobResult[P, R]:
        """See enqueue()."""
        return await self.get_backend().aenqueue(self, args, kwargs)  # type: ignore[arg-type,return-value]

    def enqueue_many(
        self, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]
    ) -> list[JobResult[P, R]]:
        """Make a job of each call, a pair (args, kwargs); return the results in the same order.

            send.enqueue_many([send.bind(1), send.bind(2, urgent=True), ((3,), {})])

        All or none: everything is checked before the first row, and the rows (one statement per
        thousand) are one transaction, the caller's if there is one.
        """
        backend = self.get_backend()
        if hasattr(backend, "enqueue_many"):
            return backend.enqueue_many(self, calls)  # type: ignore[no-any-return]
        return [backend.enqueue(self, args, kwargs) for args, kwargs in calls]  # type: ignore[misc,arg-type]

    async def aenqueue_many(
        self, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]
    ) -> list[JobResult[P, R]]:
        """See enqueue_many()."""
        return await sync_to_async(self.enqueue_many, thread_sensitive=True)(calls)

    def get_result(self, result_id: str) -> JobResult[P, R]:
        """Return the result of one of this task's jobs.

        Raise TaskResultDoesNotExist, or TaskResultMismatch for a job of another task.
        """
        return cast("JobResult[P, R]", Task.get_result(self, result_id))

    async def aget_result(self, result_id: str) -> JobResult[P, R]:
        """See get_result()."""
        return cast("JobResult[P, R]", await Task.aget_result(self, result_id))

    # The framework's own pass keywords through functions with named parameters of their own
    # (`self`), which a task's keyword of that name would collide with.

    def call(self, /, *args: Any, **kwargs: Any) -> R:
        """Run the function here and now; no job is made."""
        function: Callable[[], Any] = partial(self.func, *args, **kwargs)
        result: R = async_to_sync(function)() if self.is_async else function()
        return result

    async def acall(self, /, *args: Any, **kwargs: Any) -> R:
        """See call()."""
        function: Callable[[], Any] = partial(self.func, *args, **kwargs)
        result: R = await function() if self.is_async else await sync_to_async(function)()
        return result

    def as_recorded(self, **changes: Any) -> Self:
        """Return a copy with other options that were valid once: nothing is checked.

        For jobs that exist: their queue or alias may have left the settings since.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return self._unchecked(values | changes)

    @classmethod
    def _unchecked(cls, values: Mapping[str, Any]) -> Self:
        task = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(task, name, value)
        return task

    @classmethod
    def _reconstruct(cls, kwargs: dict[str, Any]) -> Self:
        path = kwargs["func"]
        try:
            function = import_string(path).func
        except (ImportError, AttributeError) as error:
            raise ValueError(f"Expected {path!r} to point to a Task instance.") from error
        return cls._unchecked(kwargs | {"func": function})

    def __copy__(self) -> Self:
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return self.__class__._reconstruct, (values | {"func": self.module_path},)


def takes_delays(backend: Any) -> bool:
    """Return whether `backend` accepts a timedelta as run_after."""
    return bool(getattr(backend, "takes_delays", False))


# --- the decorator -------------------------------------------------------------------------------


class TaskOptions(TypedDict, total=False):
    """The keywords of `task`, beside takes_context; see the module docstring."""

    priority: int
    queue_name: str
    backend: str
    max_attempts: MaxAttempts
    retry: RetryPolicy | Mapping[str, float]
    timeout: float | timedelta
    soft_timeout: float | timedelta
    atomic: bool
    on_crash: Literal["retry", "bury"]
    expose: Collection[Literal["staff", "api"]]
    tags: Collection[str]
    expires: timedelta
    unique: Unique | UniqueKey | Mapping[str, Any] | bool
    unique_key: str
    limit: Limit | int | Mapping[str, Any]


class _Decorator(Protocol):
    @overload
    def __call__[**P, R](
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> JobTask[P, R]: ...
    @overload
    def __call__[**P, R](self, function: Callable[P, R], /) -> JobTask[P, R]: ...


class _ContextDecorator(Protocol):
    @overload
    def __call__[**P, R](
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /
    ) -> JobTask[P, R]: ...
    @overload
    def __call__[**P, R](self, function: Callable[Concatenate[Any, P], R], /) -> JobTask[P, R]: ...


@overload
def task[**P, R](function: Callable[P, Coroutine[Any, Any, R]], /) -> JobTask[P, R]: ...
@overload
def task[**P, R](function: Callable[P, R], /) -> JobTask[P, R]: ...
@overload
def task(*, takes_context: Literal[True], **options: Unpack[TaskOptions]) -> _ContextDecorator: ...
@overload
def task(
    *, takes_context: Literal[False] = False, **options: Unpack[TaskOptions]
) -> _Decorator: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a task of a module-level function, with or without options.

    Raise InvalidTask for a function that a worker could not import, or an option out of range.
    """
    if "run_after" in options:
        raise TypeError("run_after belongs to a job, not to a task: use .using(run_after=...).")
    if isinstance(options.get("expires"), datetime):
        raise TypeError(
            "A task's expires is a timedelta: a time belongs to a job, use .using(expires=...)."
        )
    definitions.refuse_none(options)
    alias = options.get("backend", DEFAULT_TASK_BACKEND_ALIAS)

    def decorate(function: Callable[..., Any]) -> JobTask[..., Any]:
        task_class = task_backends[alias].task_class
        chosen = task_class if issubclass(task_class, JobTask) else JobTask
        return chosen(func=function, **options)

    return decorate if function is None else decorate(function)


__all__ = [
    "Call",
    "JobTask",
    "TaskOptions",
    "as_job_task",
    "autodiscover",
    "registry",
    "task",
]
