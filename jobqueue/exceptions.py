"""Every error that jobqueue raises, and the four exceptions that a task may raise to steer it.

    JobQueueError
    ├── InvalidOptions(ImproperlyConfigured)   settings
    ├── InvalidArgument(ValueError)            what enqueue was given
    │   ├── PayloadTooLarge
    │   ├── InvalidFilter                      which jobs are meant
    │   ├── InvalidRunAfter
    │   ├── InvalidExpires
    │   ├── InvalidUniqueKey
    │   ├── InvalidSchedule                    with a reason for each field
    │   ├── InvalidSubmission                  what a client asked to enqueue, by its places
    │   └── InvalidIdempotencyKey
    ├── IdempotencyKeyReused                   another request had this key
    ├── IdempotencyKeyInProgress               … or the same one has not ended
    ├── UniqueKeyTaken                         a job of somebody else holds the unique key
    ├── TransactionOpen                        around what must be committed before its answer
    ├── DatabaseUnavailable                    whether it was committed may not be known
    ├── UnsupportedType(TypeError)             an argument or result JSON cannot hold
    ├── KeyBusy                                somebody else is enqueueing this unique key
    ├── LeaseLost                              the guard did not match
    ├── TransactionLeftOpen                    a job left a transaction by hand
    ├── ResultNotSerializable                  what a job returned
    ├── StepError                              a step used where it cannot work
    ├── MailNotSent                            what a job with a message met
    ├── JobNotFound / JobChanged / WrongState / RowLocked   operators
    ├── BulkOperationNotFound
    ├── ScheduleNotFound / ScheduleChanged     operators, about schedules
    ├── DeclaredInCode                         … whose plan is not theirs to change
    ├── WorkerLost, WorkerStopped              recorded for an attempt, never raised at one
    ├── TaskNotRegistered
    └── TaskNotExposed                         enqueueing by hand
    TimeLimitExceeded, RunAbandoned            raised in the code of a job that has to stop

Each carries a ``code`` (kebab-case) that the HTTP API maps to a problem type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured


class JobQueueError(Exception):
    """Something in jobqueue went wrong."""

    code: ClassVar[str] = "error"


class InvalidOptions(JobQueueError, ImproperlyConfigured):
    """The OPTIONS of a TASKS alias cannot be used."""

    code = "invalid-options"


class InvalidArgument(JobQueueError, ValueError):
    """A value given to enqueue or to an operator's call is out of its range."""

    code = "invalid-argument"


class InvalidFilter(InvalidArgument):
    """A filter cannot be read: what is wrong, and where in its text."""

    code = "invalid-filter"

    def __init__(self, problem: str, *, text: str = "", position: int = 0, length: int = 1):
        super().__init__(f"{problem} (at character {position + 1})")
        self.problem = problem
        self.text = text
        self.position = position
        self.length = length

    @property
    def pointer(self) -> str:
        """The text with marks under the place, for surfaces with one width of letters."""
        line = "".join(" " if sign.isspace() else sign for sign in self.text)
        return f"{line}\n{' ' * self.position}{'^' * self.length}"


class InvalidRunAfter(InvalidArgument):
    """run_after is not a time between 1970 and 9999."""

    code = "invalid-run-after"


class InvalidExpires(InvalidArgument):
    """expires is not a time after run_after, or a delay that is longer than nothing."""

    code = "invalid-expires"


class InvalidUniqueKey(InvalidArgument):
    """A unique key is not text that a database can store."""

    code = "invalid-unique-key"


class PayloadTooLarge(InvalidArgument):
    """The encoded arguments or result are larger than the limit."""

    code = "payload-too-large"


class InvalidSchedule(InvalidArgument):
    """A schedule cannot be used as it is given; `errors` says why, by the name of the field."""

    code = "invalid-schedule"

    def __init__(self, errors: Mapping[str, str]):
        super().__init__("; ".join(f"{field}: {reason}" for field, reason in errors.items()))
        self.errors = dict(errors)


class Flaw(NamedTuple):
    """One thing wrong with what a client sent: where (a JSON pointer, RFC 6901), and what to do."""

    pointer: str
    detail: str
    code: str = "invalid-argument"


class InvalidSubmission(InvalidArgument):
    """What a client asked to enqueue cannot be: each of `errors` says where and why."""

    code = "invalid-fields"

    def __init__(self, errors: Sequence[Flaw]):
        super().__init__("; ".join(f"{e.pointer or 'the body'}: {e.detail}" for e in errors[:10]))
        self.errors = tuple(errors)


class InvalidIdempotencyKey(InvalidArgument):
    """An idempotency key is not 1 to 255 printable ASCII characters."""

    code = "invalid-idempotency-key"


class IdempotencyKeyReused(JobQueueError):
    """The key came with another request before. Use a new key for a new request."""

    code = "idempotency-key-reused"


class IdempotencyKeyInProgress(JobQueueError):
    """The first request with this key has not ended. Repeat this one, as it is, in a moment."""

    code = "idempotency-key-in-progress"


class UniqueKeyTaken(JobQueueError):
    """A job that is not the caller's holds the unique key; nothing was enqueued.

    errors: which of the requested jobs.
    """

    code = "unique-key-taken"

    def __init__(self, errors: Sequence[Flaw]):
        super().__init__(
            "Another job holds this unique key, so nothing was enqueued. Try again later."
        )
        self.errors = tuple(errors)


class TransactionOpen(JobQueueError):
    """A transaction is open around what must be committed before it is answered."""

    code = "transaction-open"


class DatabaseUnavailable(JobQueueError):
    """The database was lost, or too busy, before it could say that the change is committed.

    Whether it is may not be known. A request with an idempotency key can be repeated as it is: it
    is answered as the first was, or done now.
    """

    code = "unavailable"


class UnsupportedType(JobQueueError, TypeError):
    """A value has a type that JSON cannot hold."""

    code = "unsupported-type"


class KeyBusy(JobQueueError):
    """Transactions of others held the unique key for too long; nothing was enqueued. Try again.

    Whether there is a job of this key depends on whether they commit: one of them makes it, or
    keeps it from starting until its own commit.
    """

    code = "key-busy"


class LeaseLost(JobQueueError):
    """The job no longer belongs to this run of it: nothing was written, and nothing may be.

    run: the job's id and the fence of the run whose guard has failed.
    """

    code = "lease-lost"

    def __init__(self, message: str = "", *, run: tuple[UUID, int] | None = None):
        super().__init__(message)
        self.run = run


class TransactionLeftOpen(JobQueueError):
    """The task entered a transaction.atomic() block by hand and did not leave it."""

    code = "transaction-left-open"


class ResultNotSerializable(JobQueueError):
    """The task's return value cannot be stored as JSON; return plain data, such as obj.pk."""

    code = "result-not-serializable"


class StepError(JobQueueError):
    """A step was used where it cannot keep its promise."""

    code = "step-error"


class MailNotSent(JobQueueError):
    """The backend that sends mail has sent nothing."""

    code = "mail-not-sent"


class JobNotFound(JobQueueError, LookupError):
    """There is no job with this id."""

    code = "job-not-found"


class JobChanged(JobQueueError):
    """The job was changed since it was read; read it again."""

    code = "precondition-failed"


class BulkOperationNotFound(JobQueueError, LookupError):
    """There is no bulk operation with this number."""

    code = "bulk-operation-not-found"


class ScheduleNotFound(JobQueueError, LookupError):
    """There is no schedule of this name."""

    code = "schedule-not-found"


class ScheduleChanged(JobQueueError):
    """The schedule was changed by somebody else since it was read; read it again."""

    code = "schedule-changed"


class DeclaredInCode(JobQueueError):
    """The schedule is declared in code, which is where to change it."""

    code = "declared-in-code"


class WrongState(JobQueueError):
    """The state of the job, or of the operation, does not allow this action."""

    code = "wrong-state"

    def __init__(self, message: str, *, current_state: str, allowed_actions: tuple[str, ...] = ()):
        super().__init__(message)
        self.current_state = current_state
        self.allowed_actions = allowed_actions


class RowLocked(JobQueueError):
    """The row is locked by a transaction that has not ended; try again."""

    code = "row-locked"


class WorkerLost(JobQueueError):
    """The worker that ran this attempt died or lost its lease."""

    code = "worker-lost"


class WorkerStopped(JobQueueError):
    """The worker was told to stop before this attempt had ended."""

    code = "worker-stopped"


class TaskNotRegistered(JobQueueError, LookupError):
    """No task of this name is registered in this process."""

    code = "task-not-registered"


class TaskNotExposed(JobQueueError, LookupError):
    """The surface offers no task of this name."""

    code = "task-not-exposed"


class TimeLimitExceeded(BaseException):
    """The attempt ran for longer than it may.

    Raised in a ``def`` task, anywhere in its code, and recorded for every attempt that timed out.
    Not an Exception, like ``asyncio.CancelledError``: a loop that goes on after any Exception must
    end. A task may catch it to leave something behind, for a moment only.
    """

    code: ClassVar[str] = "time-limit-exceeded"


class RunAbandoned(BaseException):
    """The job was taken from this run (cancelled by force, or past its deadline): stop.

    Raised in a ``def`` task, anywhere in its code. Nothing that it does can be committed.
    """

    code: ClassVar[str] = "run-abandoned"


class Steering(Exception):
    """Base of what a task may raise to decide its own next state. Its writes are rolled back."""


class ForeignTransactionWarning(UserWarning):
    """A job was enqueued inside a transaction of another database than its own."""


def _seconds(value: float | timedelta, what: str) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not 0 <= seconds <= 10 * 365 * 86_400:
        raise InvalidArgument(f"{what} must be between 0 seconds and ten years, not {value!r}.")
    return seconds


class Snooze(Steering):
    """Run the job again after `delay` (seconds or timedelta); uses up no attempt."""

    def __init__(self, delay: float | timedelta):
        self.delay = _seconds(delay, "The delay of Snooze")
        super().__init__(f"snoozed for {self.delay:g} s")


class Retry(Steering):
    """Count this attempt as failed and retry, after `after` seconds if it is given."""

    def __init__(self, reason: Any = "", *, after: float | timedelta | None = None):
        self.after = None if after is None else _seconds(after, "after")
        super().__init__(reason)


class GiveUp(Steering):
    """Bury the job now, whatever attempts are left."""

    def __init__(self, reason: Any = ""):
        super().__init__(reason)


class Cancel(Steering):
    """End the job as cancelled."""

    def __init__(self, reason: Any = ""):
        super().__init__(reason)
