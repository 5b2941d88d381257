"""The state machine of a job, as data.

The one place that says which transition exists. The check constraints of the ``Job`` model
repeat it in the database, a test compares the two, and the diagram in the docs is generated
from it. Nothing here touches a database.
"""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a job is in its life."""

    SCHEDULED = "scheduled"
    READY = "ready"
    BLOCKED = "blocked"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Outcome(StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"


class Blame(StrEnum):
    """Who is to blame for a worker's death: its jobs are suspects, or not, or it was stopped."""

    JOBS = "jobs"
    NOBODY = "nobody"
    STOPPED = "stopped"


WAITING = frozenset({State.SCHEDULED, State.READY, State.BLOCKED, State.RETRYING})
LIVE = WAITING | {State.RUNNING}
FINISHED = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED})

CHARGED = frozenset({Outcome.FAILED, Outcome.TIMED_OUT})
"""Outcomes that use up one of ``max_attempts``. Lost workers are bounded apart, by suspicions."""

FAILURES = CHARGED | {Outcome.LOST}
"""Outcomes that are told as failed: with an error, in error groups and in rates of failure."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One verb: the states it leaves, the states it may lead to, who does it, and when."""

    verb: str
    sources: frozenset[State | None]
    targets: frozenset[State]
    who: str
    when: str


def _transition(
    verb: str, sources: set[State] | None, targets: set[State], who: str, when: str
) -> Transition:
    return Transition(
        verb, frozenset(sources) if sources else frozenset({None}), frozenset(targets), who, when
    )


_S = State

TRANSITIONS: tuple[Transition, ...] = (
    _transition(
        "enqueue",
        None,
        {_S.SCHEDULED, _S.READY, _S.BLOCKED},
        "caller",
        "run_after in the future, now, or waiting for a dependency",
    ),
    _transition("promote", {_S.SCHEDULED, _S.RETRYING}, {_S.READY}, "worker, scheduler", "due"),
    _transition(
        "admit",
        {_S.BLOCKED},
        {_S.SCHEDULED, _S.READY, _S.DEAD, _S.CANCELLED},
        "worker, scheduler",
        "limit, dependency or task available; parent failed, by its policy",
    ),
    _transition("claim", {_S.READY}, {_S.RUNNING}, "worker", "a free slot; the fence grows"),
    _transition("park", {_S.READY}, {_S.BLOCKED}, "claim, sweep", "full key, unknown task"),
    _transition(
        "reschedule",
        {_S.READY, _S.SCHEDULED, _S.RETRYING, _S.BLOCKED},
        {_S.READY, _S.SCHEDULED, _S.RETRYING, _S.BLOCKED},
        "operator",
        "reschedule, run now, move, re-prioritize",
    ),
    _transition(
        "cancel",
        {_S.READY, _S.SCHEDULED, _S.RETRYING, _S.BLOCKED, _S.RUNNING},
        {_S.CANCELLED},
        "operator, worker, supervisor, reaper, scheduler",
        "asked for, or raised by the job",
    ),
    _transition(
        "expire",
        {_S.READY, _S.SCHEDULED, _S.RETRYING, _S.BLOCKED},
        {_S.CANCELLED},
        "worker, scheduler",
        "not started in time",
    ),
    _transition(
        "supersede",
        {_S.READY, _S.SCHEDULED, _S.RETRYING, _S.BLOCKED, _S.RUNNING, _S.DEAD, _S.CANCELLED},
        {_S.CANCELLED},
        "worker, supervisor, reaper, operator",
        "it, or another of its unique key, would wait again, and the other lives on",
    ),
    _transition("finish", {_S.RUNNING}, {_S.SUCCEEDED}, "worker", "in the job's transaction"),
    _transition(
        "retry",
        {_S.RUNNING},
        {_S.RETRYING},
        "worker, supervisor, reaper",
        "failures below max_attempts",
    ),
    _transition("snooze", {_S.RUNNING}, {_S.SCHEDULED}, "worker", "the job asked to wait"),
    _transition(
        "bury",
        {_S.RUNNING},
        {_S.DEAD},
        "worker, supervisor, reaper",
        "out of attempts, GiveUp, poison, or on_crash='bury'",
    ),
    _transition(
        "release", {_S.RUNNING}, {_S.READY}, "worker, supervisor", "not started, or stopped"
    ),
    _transition(
        "reap",
        {_S.RUNNING},
        {_S.READY, _S.RETRYING},
        "supervisor, reaper",
        "its worker is dead: at once, or after a back-off and then alone",
    ),
    _transition(
        "requeue",
        {_S.DEAD, _S.CANCELLED},
        {_S.READY, _S.SCHEDULED},
        "operator",
        "a new budget of attempts; the history is kept",
    ),
    _transition("discard", {_S.DEAD}, {_S.CANCELLED}, "operator", "given up for good"),
)


def is_allowed(source: State | None, target: State) -> bool:
    """Return whether some verb leads from `source` (None: not yet a job) to `target`."""
    return any(source in t.sources and target in t.targets for t in TRANSITIONS)
