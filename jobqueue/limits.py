"""Limits: how many jobs of one key run at once, and how many start in a period. Pure.

    from jobqueue import Limit, task

    @task(limit=1)                                            # one job of this task at a time
    @task(limit=Limit(2, key="customer:{customer_id}"))       # two of each customer
    @task(limit=Limit(rate=100, per=60, name="mailgun"))      # 100 a minute of all that share it
    @task(limit=Limit(1, key=lambda order_id: region_of(order_id), name="region"))

A job carries its key as text: ``name``, or ``name:value`` where the limit has a `key`. The name is
`name`; else what stands before the colon in the text of `key` ("customer"); else the task's path.
Tasks whose limits have the same name share them, and the numbers belong to the name: an operator
changes them for the name, or for one key.

key    text with the task's parameters in braces, or a callable that gets the job's arguments and
       returns the value; None: this job has no limit. Read once, when the job is enqueued.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from string import Formatter
from typing import Any

MAX_KEY_LENGTH = 255
MAX_NAME_LENGTH = 128
MAX_RUNNING = 1_000_000
MAX_RATE = 1_000_000
MIN_PERIOD_SECONDS = 0.1
MAX_PERIOD_SECONDS = 31 * 86_400.0
QUEUE = "queue"
"""The name of the limits of whole queues: ``queue:mail``. No limit of jobs may have it."""


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `running` jobs of a key at once, at most `rate` starts in any `per` seconds.

    See the module docstring for `key` and `name`. Raise ValueError or TypeError for numbers out of
    range: `running` and `rate` from 1 to a million, `per` from 0.1 s to 31 days.
    """

    running: int | None = None
    rate: int | None = None
    per: float | timedelta | None = None
    key: str | Callable[..., Any] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.per, timedelta):
            object.__setattr__(self, "per", self.per.total_seconds())
        check_numbers(*self.numbers, lowest=1)
        if self.running is None and self.rate is None:
            raise ValueError("a limit needs a number: how many run at once, or rate and per")
        _check_key(self.key)
        _check_name(self.name)
        self.placeholders()  # raises for malformed braces
        if QUEUE in (self.name, self._name_in_key):
            raise ValueError(f'a limit of jobs cannot be called "{QUEUE}", as those of queues are')

    @property
    def numbers(self) -> tuple[int | None, int | None, float | None]:
        """Running, rate and period in seconds."""
        return self.running, self.rate, self.per  # type: ignore[return-value] # no timedelta now

    @property
    def _name_in_key(self) -> str:
        """The name that the text of `key` begins with, "" if it has none."""
        if not isinstance(self.key, str):
            return ""
        literal = self.key.partition("{")[0]
        name, colon, _ = literal.partition(":")
        return name if colon or literal == self.key else ""

    def name_for(self, task: str) -> str:
        """Return the name of this limit on a task of this path."""
        return self.name or self._name_in_key or task

    def placeholders(self) -> set[str]:
        """Return the parameters that the text of `key` names. Raise ValueError for bad braces."""
        if not isinstance(self.key, str):
            return set()
        fields = (field for _, field, _, _ in Formatter().parse(self.key) if field is not None)
        return {field.partition(".")[0].partition("[")[0] for field in fields}

    def key_of(self, task: str, value: str | None) -> str:
        """Return the key of a job of this task; `value` is what `key` gave, or was given instead.

        None: the limit has no `key`, its name is the key of all its jobs.
        """
        name = self.name_for(task)
        if value is None or value == name:
            return name
        return value if value.startswith(f"{name}:") else f"{name}:{value}"

    def text_of(self, arguments: Mapping[str, Any]) -> str:
        """Return the text of `key` with the arguments of a job filled in."""
        assert isinstance(self.key, str)
        return self.key.format(**arguments)


def queue_key(queue: str) -> str:
    """Return the key of the limit of a whole queue."""
    return f"{QUEUE}:{queue}"


def check_numbers(
    running: int | None, rate: int | None, per: float | None, *, lowest: int = 0
) -> None:
    """Raise ValueError or TypeError unless these can be the numbers of a limit.

    lowest: 1 in code; an operator may set 0 running, which stops the key.
    """
    _check_whole("running", running, lowest, MAX_RUNNING)
    _check_whole("rate", rate, 1, MAX_RATE)
    if (rate is None) != (per is None):
        raise ValueError("rate and per belong together: so many starts in so many seconds")
    if per is None:
        return
    if isinstance(per, bool) or not isinstance(per, int | float):
        raise TypeError(f"per is a number of seconds or a timedelta, not {per!r}")
    if not MIN_PERIOD_SECONDS <= per <= MAX_PERIOD_SECONDS:
        raise ValueError(
            f"per is {MIN_PERIOD_SECONDS:g} to {MAX_PERIOD_SECONDS:g} seconds, not {per!r}"
        )


def parse_limit(value: Any) -> Limit:
    """Return `value` (a Limit, its keywords as a dict, or how many run at once) as a Limit.

    Raise ValueError or TypeError if it is none.
    """
    if isinstance(value, Limit):
        return value
    if isinstance(value, Mapping):
        return Limit(**value)
    if isinstance(value, int):
        return Limit(value)
    raise TypeError("must be a number of jobs, a Limit, or its keywords as a dict")


def _check_key(key: Any) -> None:
    if not (key is None or callable(key) or (isinstance(key, str) and key)):
        raise TypeError(f"key is text or a callable, not {key!r}")


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or len(name) > MAX_NAME_LENGTH or ":" in name:
        raise ValueError(
            f"name is text of at most {MAX_NAME_LENGTH} characters without a colon, not {name!r}"
        )


def _check_whole(what: str, value: Any, low: int, high: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} is a whole number, not {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{what} is {low:,} to {high:,}, not {value!r}")
