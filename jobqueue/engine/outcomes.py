"""Retry, bury, snooze: where the end of an execution leads the job. Decisions; nothing is written.

`decide_failure` is where the end of an attempt in a living worker is decided, `next_try` whether
and when a charged attempt is followed by another, whoever charged it. Lost workers are decided in
`jobqueue.engine.recovery`, with the same back-off.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from jobqueue.conf import Options
from jobqueue.exceptions import Cancel, GiveUp, Retry, Snooze, TimeLimitExceeded
from jobqueue.payload import ErrorText, describe_exception
from jobqueue.retry import RetryPolicy, delay_seconds
from jobqueue.states import CHARGED, FINISHED, Outcome, State
from jobqueue.storage.records import Claim, Ending, Success

PUT_OFF_SECONDS = 5.0
"""When a job is tried again whose code could not begin: others hold what it needs."""


@dataclass(slots=True)
class Ended:
    """One execution that has ended, and what is still to be written about it. Never changed.

    result: a finish that goes with the next batch. failure: any other way out. committed: the
    job's own transaction carried the finish. None of them: the lease is lost, nothing may be
    written. started, ended: this process's monotonic clock.
    """

    claim: Claim
    started: float
    ended: float
    committed: bool = False
    result: str | None = None
    failure: Failure | None = None

    @property
    def is_success(self) -> bool:
        return self.committed or self.result is not None

    @property
    def text_size(self) -> int:
        """Characters that writing this end down takes, roughly."""
        if self.result is not None:
            return len(self.result)
        error = self.failure and self.failure.error
        return len(error.traceback) if error else 0

    def as_success(self) -> Success:
        """Return the row of a batched finish, with ages as of now."""
        assert self.result is not None
        now = time.monotonic()
        return Success(
            self.claim.id, self.claim.fence, self.result, now - self.started, now - self.ended
        )

    def as_ending(self) -> Ending:
        """Return the row of any other way out, with ages as of now."""
        failure = self.failure
        assert failure is not None
        return Ending(
            id=self.claim.id,
            fence=self.claim.fence,
            worker=self.claim.worker,
            state=failure.state,
            outcome=failure.outcome,
            charged=failure.charged,
            delay=failure.delay,
            started_ago=time.monotonic() - self.started,
            error=failure.error,
            reason=failure.reason,
            alone=self.claim.alone,
            aging_seconds=failure.aging_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Where a job goes that did not succeed, and how its attempt is recorded."""

    state: State
    outcome: Outcome
    charged: bool
    delay: float | None
    error: ErrorText | None
    reason: str
    aging_seconds: float


def next_try(
    failures: int,
    max_attempts: int | None,
    policy: RetryPolicy,
    error: BaseException,
) -> float | None:
    """Return the seconds until the next attempt, after `failures` charged ones and one more.

    None: there is none left. error: what ended the attempt; `Retry` may say how long.
    """
    number = failures + 1
    if max_attempts is not None and number >= max_attempts:
        return None
    if isinstance(error, Retry) and error.after is not None:
        return error.after
    return delay_seconds(policy, number, error)


def decide_failure(
    claim: Claim,
    error: BaseException,
    policy: RetryPolicy | None,
    options: Options,
    cancel_reason: str | None = None,
) -> Failure:
    """Return where `error`, raised by the job's code or its commit, leads the job.

    cancel_reason: somebody has asked for the job to be cancelled, so it does not run again.
    """
    failure = _decide(claim, error, policy, options)
    if cancel_reason is None or failure.state in FINISHED - {State.CANCELLED}:
        return failure
    return replace(failure, state=State.CANCELLED, delay=None, reason=cancel_reason)


def _decide(
    claim: Claim, error: BaseException, policy: RetryPolicy | None, options: Options
) -> Failure:
    text = describe_exception(error, options.max_traceback_bytes)
    if isinstance(error, Snooze):
        return _failure(State.SCHEDULED, Outcome.SNOOZED, options, delay=error.delay)
    if isinstance(error, Cancel):
        return _failure(
            State.CANCELLED, Outcome.CANCELLED, options, error=text, reason="by the task"
        )
    timed_out = isinstance(error, TimeLimitExceeded)
    outcome = Outcome.TIMED_OUT if timed_out else Outcome.FAILED
    if isinstance(error, GiveUp):
        return _failure(State.DEAD, outcome, options, error=text, reason="gave up")
    delay = next_try(claim.failures, claim.max_attempts, policy or options.retry, error)
    if delay is None:
        return _failure(State.DEAD, outcome, options, error=text, reason="out of attempts")
    return _failure(State.RETRYING, outcome, options, error=text, delay=delay)


def decide_unrunnable(claim: Claim, error: BaseException, options: Options) -> Failure:
    """Return where a job goes whose row cannot be run as it is: more attempts would not help."""
    text = describe_exception(error, options.max_traceback_bytes)
    return _failure(State.DEAD, Outcome.FAILED, options, error=text, reason="undecodable row")


def put_off(error: BaseException, options: Options) -> Failure:
    """Return where a job goes whose code could not begin: it runs later, uncharged."""
    return _failure(
        State.SCHEDULED,
        Outcome.SNOOZED,
        options,
        delay=PUT_OFF_SECONDS,
        error=describe_exception(error, options.max_traceback_bytes),
        reason="could not begin",
    )


def _failure(
    state: State,
    outcome: Outcome,
    options: Options,
    *,
    delay: float | None = None,
    error: ErrorText | None = None,
    reason: str = "",
) -> Failure:
    return Failure(
        state=state,
        outcome=outcome,
        charged=outcome in CHARGED,
        delay=delay,
        error=error,
        reason=reason,
        aging_seconds=options.aging_seconds,
    )
