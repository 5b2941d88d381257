"""What the definition of a task may say: its function, its name and its options.

Everything is refused where the task is defined, with the way out; a worker that met it later
could only fail the job. Raises the framework's InvalidTask; InvalidRunAfter or
InvalidExpires for a bad time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from jobqueue.compat import InvalidTask
from jobqueue.conf import (
    MAX_QUEUE_NAME_LENGTH,
    MAX_TASK_NAME_LENGTH,
    UNLIMITED,
    parse_max_attempts,
    parse_retry,
    parse_timeout,
)
from jobqueue.engine.arguments import bound_arguments, parameters_of
from jobqueue.engine.keys import check_unique
from jobqueue.exceptions import InvalidArgument, InvalidExpires, InvalidRunAfter
from jobqueue.limits import MAX_KEY_LENGTH, Limit, parse_limit
from jobqueue.payload import storable_text
from jobqueue.plan import EARLIEST, LATEST
from jobqueue.retry import RetryPolicy
from jobqueue.unique import Unique

MAX_TAGS = 32
"""Tags of one job: each is a row of its own, written with the job."""
MAX_TAG_LENGTH = 100
SURFACES = frozenset({"staff", "api"})
"""Where a task may be offered for enqueueing by hand."""
ON_CRASH = frozenset({"retry", "bury"})


def check_function(function: Callable[..., Any]) -> None:
    """Raise InvalidTask unless another process can import `function` by its module path."""
    if not inspect.isfunction(function):
        raise InvalidTask(
            f"A task is made of a plain function, not of {function!r}. Decorate a function "
            "defined with def or async def at the top of a module."
        )
    name = f"{function.__module__}.{function.__qualname__}"
    if function.__module__ in ("__main__", "builtins") or not function.__module__:
        raise InvalidTask(
            f"Task {name} is defined in the script that is running, which a worker cannot import; "
            "move it into a module, such as the `tasks` module of an installed app."
        )
    if not function.__qualname__.isidentifier():
        raise InvalidTask(
            f"Task {name} must be defined at module level: a worker imports it by its path, and "
            "finds no lambda, method or nested function. (A decorator below @task needs "
            "functools.wraps.)"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTask(f"Task {name} is a generator: calling it would run nothing of it.")
    if not _is_storable(name, MAX_TASK_NAME_LENGTH):
        raise InvalidTask(
            f"The path of task {name[:80]}… is longer than {MAX_TASK_NAME_LENGTH} characters."
        )


def check_queue_name(name: Any) -> None:
    """Raise InvalidTask unless `name` can be the name of a queue."""
    if not isinstance(name, str) or not _is_storable(name, MAX_QUEUE_NAME_LENGTH):
        raise InvalidTask(
            f"queue_name must be text of 1 to {MAX_QUEUE_NAME_LENGTH} characters, not {name!r}."
        )


def max_attempts_option(value: Any) -> Any:
    """Return `value` if it is a number of attempts, "unlimited", or None: the alias's default."""
    if value is None:
        return None
    return _parsed("max_attempts", value, parse_max_attempts) or UNLIMITED


def retry_option(value: Any) -> RetryPolicy | None:
    """Return `value` (a policy, the keywords of a Backoff, None) as a policy or None."""
    return None if value is None else _parsed("retry", value, parse_retry)


def timeout_option(value: Any) -> float | None:
    """Return `value` (seconds, timedelta, None) as seconds or None."""
    return None if value is None else _parsed("timeout", value, parse_timeout)


def soft_timeout_option(value: Any, timeout: Any) -> float | None:
    """Return `value` (seconds, timedelta, None) as seconds or None; it must be below `timeout`."""
    soft = None if value is None else _parsed("soft_timeout", value, parse_timeout)
    hard = timeout_option(timeout)
    if soft is not None and hard is not None and soft >= hard:
        raise InvalidTask(
            f"soft_timeout ({soft:g} s) must be below timeout ({hard:g} s): it is what a job gets "
            "to clean up in. Without it TimeLimitExceeded is raised at the timeout."
        )
    return soft


def atomic_option(value: Any, is_async: bool) -> bool:
    """Return whether the task is atomic: by default if it is a ``def``."""
    if value is None:
        return not is_async
    if not isinstance(value, bool):
        raise InvalidTask(f"atomic must be True or False, not {value!r}.")
    if value and is_async:
        raise InvalidTask(
            "An async def task cannot be atomic: Django has no transaction around a coroutine. "
            "Leave atomic out, and put last writes into `with context.atomic():` and "
            "`context.commit(result)` in a function called through sync_to_async."
        )
    return value


def on_crash_option(value: Any) -> str:
    """Return `value` if it says what happens to a job that lost its worker."""
    if value not in ON_CRASH:
        raise InvalidTask(f'on_crash must be "retry" or "bury", not {value!r}.')
    return str(value)


def unique_option(value: Any, function: Callable[..., Any], takes_context: bool) -> Unique | None:
    """Return `value` (a bool, names, a callable, a Unique or its keywords) as rules or None."""
    if value is None or value is False:
        return None
    try:
        rules = value if isinstance(value, Unique) else Unique(**_keywords(value))
    except ValueError as error:
        raise InvalidTask(str(error)) from None
    except TypeError as error:
        raise InvalidTask(f"unique has unknown keys: {error}") from None
    check_unique(rules, function, takes_context)
    return rules


def _keywords(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {"key": value}


def expose_option(value: Any) -> frozenset[str]:
    """Return `value`, some of "staff" and "api", as a set."""
    surfaces = frozenset(_texts("expose", value))
    if not surfaces <= SURFACES:
        raise InvalidTask(f'expose must be a set of "staff" and "api", not {value!r}.')
    return surfaces


def tags_option(value: Any) -> tuple[str, ...]:
    """Return the tags in `value`, each once, in their order."""
    tags = tuple(dict.fromkeys(_texts("tags", value)))
    for tag in tags:
        if not isinstance(tag, str) or not _is_storable(tag, MAX_TAG_LENGTH):
            raise InvalidTask(f"A tag is text of 1 to {MAX_TAG_LENGTH} characters, not {tag!r}.")
    if len(tags) > MAX_TAGS:
        raise InvalidTask(f"A job has at most {MAX_TAGS} tags, not {len(tags)}.")
    return tags


def limit_option(value: Any, function: Callable[..., Any], takes_context: bool) -> Limit | None:
    """Return `value` (a Limit, its keywords, how many run at once, None) as a Limit or None."""
    if value is None:
        return None
    try:
        limit = parse_limit(value)
    except (ValueError, TypeError) as error:
        raise InvalidTask(f"limit: {error}.") from None
    if not _is_storable(limit.name or "x", MAX_KEY_LENGTH):
        raise InvalidTask(f"limit: name cannot be stored: {limit.name!r}.")
    known = parameters_of(function, takes_context)
    unknown = sorted(limit.placeholders() - known.keys())
    if unknown:
        raise InvalidTask(
            f"limit: key {limit.key!r} names {', '.join(unknown)}, which the task does not take; "
            f"its parameters are {', '.join(known) or 'none'}."
        )
    return limit


def limit_key_option(value: Any, limit: Limit | None) -> str | None:
    """Return `value`, text that stands in for what the limit's `key` would give, or None."""
    if value is None:
        return None
    if limit is None:
        raise InvalidTask("limit_key needs a task with a limit: the limit has the numbers.")
    if not isinstance(value, str) or not _is_storable(value, MAX_KEY_LENGTH):
        raise InvalidTask(
            f"limit_key is text of 1 to {MAX_KEY_LENGTH} characters, not {value!r:.300}."
        )
    return value


def limit_key_of(
    limit: Limit,
    given: str | None,
    function: Callable[..., Any],
    takes_context: bool,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> str | None:
    """Return the key of a job with these arguments, which fit; None: this one has no limit.

    Raise InvalidArgument for a key that cannot be stored. What a callable raises is the caller's.
    """
    task = f"{function.__module__}.{function.__qualname__}"
    value: Any = given
    if value is None and callable(limit.key):
        value = limit.key(*args, **kwargs)
        if value is None:
            return None
    elif value is None and limit.key is not None:
        value = limit.text_of(bound_arguments(function, takes_context, args, kwargs))
    key = limit.key_of(task, None if value is None else str(value))
    if not _is_storable(key, MAX_KEY_LENGTH):
        raise InvalidArgument(
            f"The key of a limit is text of 1 to {MAX_KEY_LENGTH} characters without NUL, not "
            f"{key!r:.300}. Derive it from an id."
        )
    return key


def check_run_after(value: datetime | timedelta) -> None:
    """Raise InvalidRunAfter unless `value` (a time, or a delay from now) lies in 1970 … 9999."""
    try:
        moment = as_moment(value)
    except OverflowError:
        moment = None
    except (TypeError, AttributeError):
        raise InvalidRunAfter(f"run_after is a datetime or a timedelta, not {value!r}.") from None
    if moment is None or not EARLIEST <= moment <= LATEST:
        raise InvalidRunAfter(f"run_after must be a time between 1970 and 9999, not {value!r}.")


def check_expires(
    value: datetime | timedelta, run_after: datetime | timedelta | None = None
) -> None:
    """Raise InvalidExpires unless a job that may start at `run_after` can start before `value`.

    A time that has passed is not refused: the job is made, and cancelled as expired.
    """
    moment = _expiry(value)
    if moment is None or not EARLIEST <= moment <= LATEST:
        raise InvalidExpires(
            "expires must be a timedelta longer than nothing, or an (aware) datetime between 1970 "
            f"and 9999, not {value!r}."
        )
    if run_after is not None and as_moment(run_after) >= moment:
        raise InvalidExpires(
            f"A job that may not start before {run_after!r} has expired at {value!r}: expires "
            "counts from the enqueue, as run_after does, and must lie behind it."
        )


def _expiry(value: Any) -> datetime | None:
    """Return the moment that `value` means, None if it means none."""
    if isinstance(value, timedelta) and value <= timedelta(0):
        return None
    if isinstance(value, datetime) and settings.USE_TZ and timezone.is_naive(value):
        return None
    try:
        return as_moment(value)
    except (OverflowError, TypeError, AttributeError):
        return None


def as_moment(value: datetime | timedelta) -> datetime:
    """Return `value` as an aware time in UTC; a naive one is of the project's default zone."""
    if isinstance(value, timedelta):
        return datetime.now(UTC) + value
    if timezone.is_naive(value):
        value = timezone.make_aware(value, timezone.get_default_timezone())
    return value.astimezone(UTC)


def refuse_none(options: Mapping[str, Any]) -> None:
    """Raise InvalidTask if max_attempts was given as None: 0 to some, for ever to others."""
    if "max_attempts" in options and options["max_attempts"] is None:
        raise InvalidTask('max_attempts must be a whole number from 1, or "unlimited"; not None.')


def _texts(option: str, value: Any) -> tuple[Any, ...]:
    """Return a collection as a tuple; a single text is a mistake for it."""
    if not isinstance(value, str):
        with suppress(TypeError):
            found = tuple(value)
            if all(isinstance(text, str) for text in found):
                return found
    raise InvalidTask(f"{option} must be a list or set of texts, not {value!r}.")


def _parsed(option: str, value: Any, parse: Callable[[Any], Any]) -> Any:
    try:
        return parse(value)
    except (ValueError, TypeError) as error:
        raise InvalidTask(f"{option} {error}, not {value!r}.") from None


def _is_storable(text: str, characters: int) -> bool:
    """Return whether any of our databases takes `text` as it is (no NUL, no lone surrogate)."""
    return 0 < len(text) <= characters and storable_text(text, 4 * characters) == text
