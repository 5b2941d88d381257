"""Options, their defaults and limits: the one place where a number of jobqueue has its reason.

`Options` is what ``TASKS[alias]["OPTIONS"]`` becomes. `parse` never raises: it returns what it
could read and a list of problems, which the system checks print and `options_for` raises.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.dispatch import receiver

from jobqueue.declarations import Declaration, parse_schedules
from jobqueue.exceptions import InvalidOptions, InvalidSchedule
from jobqueue.limits import Limit, parse_limit
from jobqueue.option_types import choice, flag, number, option, optional_text, paths, text, whole
from jobqueue.retry import Backoff, RetryPolicy

BACKEND_PATH = "jobqueue.backend.JobQueueBackend"

MAX_PAYLOAD_DEPTH = 100
"""Levels of lists and dicts in arguments: deeper ones meet recursion limits of JSON parsers."""
MAX_TASK_NAME_LENGTH = 255
MAX_QUEUE_NAME_LENGTH = 128
MAX_JOB_REASON_LENGTH = 64
MAX_MESSAGE_BYTES = 4 * 1024
"""Bytes of an exception's own text that are kept; lists show it on one line."""
MAX_LOG_LINE_BYTES = 4 * 1024
"""Bytes of one log line that are kept: its head and its tail."""
CLAIM_WINDOW = 1_000
"""Ready rows of a queue that one claim looks at: bounds its cost when many cannot be taken."""
ENQUEUE_CHUNK = 1_000
"""Jobs in one INSERT: larger statements gain nothing and hold more memory on both sides."""
CHUNK_CHARACTERS = 4 * 1024 * 1024
"""Arguments, results or tracebacks in one statement: a thousand large ones would be more than a
server takes (1 GB)."""
PREFETCH_SECONDS = 0.1
"""Work that a process takes beyond its free slots: what it will start within this time."""
RELEASE_UNSTARTED_SECONDS = 1.0
"""A claimed job that has not started by then goes back, so that idle workers can have it."""
COMMIT_IDLE_TIMEOUT = "5s"
"""How long a session may sit between finish and COMMIT before the server ends it: a process
frozen there would keep the row from everyone."""
MAX_RERUNS = 3
"""Times one claim is run again, uncharged, after a serialization failure or a lost connection."""
RERUN_SECONDS = 0.01
"""Longest pause before the first of them, twice as long before each next: jobs that ran into each
other would do so again, and use them up (seen: two jobs of 300 on a server set to serializable)."""
KILL_SLACK_SECONDS = 2.0
"""What a job that is told to stop gets for it; then its supervisor replaces the process."""
DEADLINE_SLACK_SECONDS = 5.0
"""Past deadline plus this the reaper takes a job also from a live worker. More than the slack
above and what a job waits between its claim and its start, so that the supervisor comes first."""
KEY_WAIT_SECONDS = 5.0
"""How long an enqueue waits for transactions of others that hold its unique key: longer than such
a transaction should be, shorter than a visitor waits. After that it raises KeyBusy."""
TWIN_PATIENCE_SECONDS = 5.0
"""A unique job that could have started so long ago, and is locked by enqueues that met it, gets its
turn: further ones shut each other out, and a claim waits in their line."""
REQUEST_WAIT_SECONDS = 1.0
"""How long an HTTP request waits for another of the same idempotency key, and for any lock: such a
transaction takes some milliseconds, and who waits holds a thread of the server."""
REQUEST_IDLE_SECONDS = 5.0
"""How long a session may sit between two statements of a request: a process that is frozen there
would keep its key, and whoever repeats the request, from going on."""
REQUEST_TRIES = 4
"""How often a request is run before it gives up on serialization failures and deadlocks."""
AUDIT_PATIENCE_SECONDS = 30.0
"""How long a due or orphaned job may wait before an audit reports it: every sweep runs far more
often than that."""
LONG_TRANSACTION_SECONDS = 60.0
"""An atomic job open for longer is logged: it holds locks and the xmin horizon."""
MIN_ATTEMPT_AGE_SECONDS = 86_400.0
"""Attempts are never pruned younger: they are the witness of an unknown COMMIT."""
LOCK_LOOK_SECONDS = 1.5
"""A worker's session lock must be missing in looks that span this before it counts as dead."""
ASYNC_SLOTS = 100
"""Coroutines that one process runs at a time."""
MINUTE_ROLLUP_SECONDS = 2 * 86_400.0
"""Rollups of minutes are kept for two days: long enough to look at last night's incident."""
HOUR_ROLLUP_SECONDS = 30 * 86_400.0
"""Rollups of hours, and error groups that were not seen again, are kept for a month."""
MAX_ERROR_GROUPS = 10_000
"""Error groups that are kept, those seen last: a message that nothing normalizes makes a group of
every error."""

DAY_SECONDS = 86_400.0
UNLIMITED = "unlimited"


def parse_max_attempts(value: Any) -> int | None:
    """Return `value` as a number of attempts, None for "unlimited"; raise ValueError if neither."""
    if value == UNLIMITED:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:
        raise ValueError(f'must be a whole number from 1 to 1,000,000, or "{UNLIMITED}"')
    return value


def parse_retry(value: Any) -> RetryPolicy:
    """Return `value` (a policy, or the keywords of one) as a policy; else raise ValueError."""
    if isinstance(value, Mapping):
        try:
            return Backoff(**value)
        except TypeError as error:
            raise ValueError(f"has unknown keys: {error}") from None
    if isinstance(value, type) or not callable(value):
        raise ValueError(
            "must be a Backoff such as Backoff(base=5), its keywords as a dict, or a callable"
        )
    if not _takes_two(value):
        raise ValueError("must take (number, exception)")
    return value  # type: ignore[no-any-return]


def _takes_two(policy: Callable[..., Any]) -> bool:
    """Return whether `policy` can be called as a retry policy is; True where nobody can tell."""
    try:
        inspect.signature(policy).bind(1, None)
    except TypeError:
        return False
    except ValueError:  # in C, without a signature
        return True
    return True


def parse_timeout(value: Any) -> float:
    """Return `value` (seconds or timedelta) as seconds; raise ValueError out of 0.1 s … 30 days."""
    return number(0.1, 30 * DAY_SECONDS)(value)


def _queue_limits(value: Any) -> dict[str, Limit]:
    if not isinstance(value, Mapping):
        raise ValueError("must be a dict of limits by the name of a queue")
    limits: dict[str, Limit] = {}
    for queue, given in value.items():
        if not isinstance(queue, str) or not 1 <= len(queue) <= MAX_QUEUE_NAME_LENGTH:
            raise ValueError(f"has {queue!r}, which cannot be the name of a queue")
        limits[queue] = limit = parse_limit(given)
        if limit.key is not None or limit.name:
            raise ValueError(f"gives {queue!r} a key or name; the limit of a queue has none")
    return limits


def _retention(value: Any) -> dict[str, Any]:
    """Return seconds by state; under "queues" by queue and state, where a queue has its own."""
    if not isinstance(value, Mapping):
        raise ValueError("must be a dict")
    rest = {state: seconds for state, seconds in value.items() if state != QUEUES_KEY}
    merged: dict[str, Any] = DEFAULT_RETENTION | _ages(rest, f"states and {QUEUES_KEY}")
    queues = value.get(QUEUES_KEY, {})
    if not isinstance(queues, Mapping) or not all(isinstance(q, str) for q in queues):
        raise ValueError(f'must have a dict of dicts under "{QUEUES_KEY}", by queue and state')
    if queues:
        merged[QUEUES_KEY] = {queue: _ages(ages, "states") for queue, ages in queues.items()}
    return merged


def _ages(value: Any, what: str) -> dict[str, float | None]:
    if not isinstance(value, Mapping) or not set(value) <= set(DEFAULT_RETENTION):
        raise ValueError(f"must be a dict of {what}, the states {', '.join(DEFAULT_RETENTION)}")
    return {state: None if age is None else _age(age) for state, age in value.items()}


def _age(value: Any) -> float:
    return number(0, 100 * 365 * DAY_SECONDS)(value)


def _optional_age(value: Any) -> float | None:
    return None if value is None else _age(value)


def _action_age(value: Any) -> float | None:
    return None if value is None else number(DAY_SECONDS, 100 * 365 * DAY_SECONDS)(value)


QUEUES_KEY = "queues"
"""Key in RETENTION under which queues have times of their own."""


DEFAULT_RETENTION: dict[str, float | None] = {
    "succeeded": 7 * DAY_SECONDS,
    "cancelled": 30 * DAY_SECONDS,
    "dead": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The engine's options of one TASKS alias; each field is the upper-case key in lower case."""

    database: str = option(
        "default", text, "Alias in DATABASES that holds the jobs. Effects are exact only there."
    )
    max_attempts: int | None = option(
        5, parse_max_attempts, "Failed or timed-out attempts before a job is a dead letter."
    )
    retry: RetryPolicy = option(
        Backoff, parse_retry, "Delay before a retry: 5 s × 4ⁿ, at most 6 h, ±15 %.", factory=True
    )
    timeout: float = option(
        1_800.0, parse_timeout, "Seconds an attempt may run. Finite: a job that hangs must end."
    )
    lease_seconds: float = option(
        15.0,
        number(1, 3_600),
        "Seconds without a heartbeat after which a worker is dead: the longest a dead host "
        "goes unseen.",
    )
    heartbeat_seconds: float = option(
        5.0,
        number(0.1, 1_200),
        "Seconds between heartbeats; at most a third of the lease, so that two may be lost.",
    )
    poll_seconds: float = option(
        1.0, number(0.01, 3_600), "Seconds between looks for work when no hint came; jittered."
    )
    batch: int = option(
        200, whole(1, 10_000), "Jobs in one claim or finish: the lever of throughput."
    )
    grace_seconds: float = option(
        30.0, number(0, 86_400), "Seconds that running jobs get to end after the first TERM."
    )
    suspicions: int = option(
        3, whole(1, 100), "Lost workers after which a job is buried as poison."
    )
    aging_seconds: float = option(
        60.0,
        number(0, 86_400),
        "What one priority point is worth in seconds of waiting; bounds starvation.",
    )
    queue_limits: dict[str, Limit] = option(
        dict,
        _queue_limits,
        "How many jobs of a queue run at once over all workers, and start in a period: a number "
        "or a Limit by the queue's name.",
        factory=True,
    )
    max_arguments_bytes: int = option(
        1024 * 1024, whole(2, 64 * 1024 * 1024), "Bytes of encoded arguments."
    )
    max_result_bytes: int = option(
        1024 * 1024, whole(2, 64 * 1024 * 1024), "Bytes of an encoded result."
    )
    max_traceback_bytes: int = option(
        32 * 1024, whole(256, 1024 * 1024), "Bytes of a stored traceback: its head and its tail."
    )
    email_backend: str = option(
        "django.core.mail.backends.smtp.EmailBackend",
        text,
        "What sends the messages that `jobqueue.email.EmailBackend` makes jobs of: the path of an "
        "email backend; where there are MAILERS, one of their aliases.",
    )
    email_queue: str = option("default", text, "The queue of those jobs; one of QUEUES.")
    log_lines: int = option(
        200,
        whole(0, 1_000),
        "Log lines kept of one attempt: the first half of them and the last; 0 keeps none.",
    )
    retention: dict[str, Any] = option(
        lambda: dict(DEFAULT_RETENTION),
        _retention,
        "Seconds that finished jobs are kept, by state, at least a day; None keeps them. Under "
        '"queues" by queue and state, where a queue has times of its own.',
        factory=True,
    )
    action_retention: float | None = option(
        365 * DAY_SECONDS,
        _action_age,
        "Seconds that it is kept who did what to jobs, queues and schedules, at least a day; None "
        "keeps it. A year: whoever asks how something came about asks within that.",
    )
    scrub_arguments: float | None = option(
        None,
        _optional_age,
        "Seconds after which the arguments of jobs that succeeded or were cancelled are deleted; "
        "None keeps them as long as the job.",
    )
    idempotency_hours: float = option(
        24.0, number(1, 8_760), "Hours that an HTTP idempotency key is kept."
    )
    accept_loss: bool = option(
        False,
        flag,
        "Allow a database that acknowledges commits before they are on disk "
        "(synchronous_commit = off): a crash of the server may then lose accepted jobs.",
    )
    hints: str = option(
        "auto",
        choice("auto", "redis", "postgres", "none"),
        "How workers learn of new jobs before the next poll: Redis if REDIS_URL, else "
        "PostgreSQL notifications, else none.",
    )
    redis_url: str | None = option(
        lambda: os.environ.get("REDIS_URL") or None,
        optional_text,
        "Redis that carries hints. Only hints: it may lose everything at any moment.",
        factory=True,
    )
    imports: tuple[str, ...] = option(
        (), paths, "Modules with tasks beside the `tasks` modules of the installed apps."
    )
    middleware: tuple[str, ...] = option(
        (),
        paths,
        "Middleware around each job, outermost first, like Django's. That of the worker's alias, "
        "whatever alias a job was enqueued under.",
    )
    schedules: tuple[Declaration, ...] = option(
        tuple,
        parse_schedules,
        "Schedules declared in code: a dict from name to keywords (see the how-to).",
        factory=True,
    )
    storage: str | None = option(
        None, optional_text, "Dotted path of the storage class; None picks by the database."
    )
    self_exit: bool = option(
        True,
        flag,
        "A worker that lost its lease exits. Off only in tests that must reach the guard itself.",
    )
    end_sessions: bool = option(
        True,
        flag,
        "End the database sessions of dead workers. Off only in tests, or where the role may not.",
    )


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """One thing wrong with an option: which, and what to do."""

    option: str
    message: str


def parse(raw: Mapping[str, Any]) -> tuple[Options, list[OptionProblem]]:
    """Return the options in `raw` and what is wrong with it; a wrong one keeps its default."""
    known = {f.name.upper(): f for f in fields(Options)}
    values: dict[str, Any] = {}
    problems: list[OptionProblem] = []
    for key, value in raw.items():
        if key not in known:
            problems.append(OptionProblem(key, f"is unknown; known are {', '.join(known)}."))
            continue
        try:
            values[known[key].name] = known[key].metadata["parse"](value)
        except InvalidSchedule as error:  # says itself what it is about
            problems.append(OptionProblem(key, f"cannot be used: {error}."))
        except (ValueError, TypeError) as error:
            problems.append(OptionProblem(key, f"{error}, not {value!r}."))
    options = Options(**values)
    if options.heartbeat_seconds > options.lease_seconds / 3:
        problems.append(
            OptionProblem(
                "HEARTBEAT_SECONDS",
                f"({options.heartbeat_seconds:g}) must be at most a third of LEASE_SECONDS "
                f"({options.lease_seconds:g}): a healthy worker would be declared dead.",
            )
        )
    return options, problems


@lru_cache(maxsize=64)
def options_for(alias: str) -> Options:
    """Return the options of TASKS alias `alias`.

    Raise InvalidOptions, with every problem, if they cannot be used. Cached until the setting
    changes.
    """
    params = getattr(settings, "TASKS", {}).get(alias, {})
    options, problems = parse(params.get("OPTIONS", {}))
    if problems:
        listed = "; ".join(f"{p.option} {p.message}" for p in problems)
        raise InvalidOptions(f"TASKS[{alias!r}]['OPTIONS']: {listed}")
    return options


def job_options(alias: str, fallback: Options) -> Options:
    """Return the options of the alias that a job was enqueued under.

    `fallback`, those of the process that has it now, where that alias is gone or unusable.
    """
    if alias not in getattr(settings, "TASKS", {}):
        return fallback
    try:
        return options_for(alias)
    except InvalidOptions:
        return fallback


def jobqueue_aliases() -> tuple[str, ...]:
    """Return the TASKS aliases whose backend is jobqueue's (or a subclass found by import)."""
    from django.utils.module_loading import import_string

    found = []
    for alias, params in getattr(settings, "TASKS", {}).items():
        try:
            backend = import_string(params.get("BACKEND", ""))
        except ImportError:
            continue  # the framework's own check reports it
        if getattr(backend, "is_jobqueue", False):
            found.append(alias)
    return tuple(found)


@receiver(setting_changed)
def _forget_options(*, setting: str, **kwargs: Any) -> None:
    if setting == "TASKS":
        options_for.cache_clear()
