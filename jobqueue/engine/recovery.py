"""Taking jobs back from the dead: who is dead, who is to blame, where each job goes.

Order, always: the worker's row says dead *first* (a compare-and-set), then its sessions are ended,
and only then, in later statements, its jobs are released by value. Repeated, round by round of
whoever calls, until no session and no row is left: a statement in flight outlives its process
(seen: 200 rows claimed by a backend whose client was gone).

What a process leaves behind that dies here …
- after the row says dead: an orphan, which every reaper finds by `orphan_workers`.
- between two batches: the rest of the jobs, found likewise. Nothing here needs to be finished by
  the process that began it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import DatabaseError

from jobqueue.conf import Options, job_options
from jobqueue.engine.announcements import announce_death, announce_finished, announce_superseded
from jobqueue.engine.halves import write_in_halves
from jobqueue.engine.limits import admit
from jobqueue.engine.outcomes import next_try
from jobqueue.events import emit, line_of
from jobqueue.exceptions import TaskNotRegistered, TimeLimitExceeded, WorkerLost
from jobqueue.exceptions import WorkerStopped as Stopped
from jobqueue.payload import ErrorText, describe_exception
from jobqueue.retry import RetryPolicy, delay_seconds
from jobqueue.states import FINISHED, Blame, Outcome, State
from jobqueue.storage import Storage
from jobqueue.storage.errors import may_pass
from jobqueue.storage.moving import as_superseded
from jobqueue.storage.records import EndedJob, Ending, Fenced, Held, Orphan

logger = logging.getLogger("jobqueue")

MAX_TOLD = 1_000
"""Refused jobs that are remembered, so that each is told of once."""
_told: set[Fenced] = set()


@dataclass(frozen=True, slots=True)
class Death:
    """What is known of a worker's end.

    started: which of its jobs (id, fence) may have been running, from shared memory; None: all.
    unwritten: those whose code had ended, without that being written. blamed: whether those that
    were running become suspects. stopped: the process was ended on purpose. timed_out: those that
    were running for too long, so that it was. direct: its sessions reached the server itself, so
    that they can be told by their name.
    """

    worker: UUID
    reason: str
    started: Collection[Fenced] | None = None
    blamed: bool = True
    stopped: bool = False
    timed_out: Collection[Fenced] = ()
    unwritten: Collection[Fenced] = ()
    direct: bool = True

    @property
    def blame(self) -> Blame:
        """What the worker's row keeps of this, for whoever goes on where somebody stopped."""
        if self.stopped:
            return Blame.STOPPED
        return Blame.JOBS if self.blamed else Blame.NOBODY


@dataclass(frozen=True, slots=True)
class Recovered:
    """What one recovery did: jobs given back unharmed, reaped as lost, buried."""

    released: int = 0
    reaped: int = 0
    buried: int = 0
    is_settled: bool = True

    def __add__(self, later: Recovered) -> Recovered:
        return Recovered(
            self.released + later.released,
            self.reaped + later.reaped,
            self.buried + later.buried,
            later.is_settled,
        )


def declare(storage: Storage, death: Death) -> None:
    """Make a death a fact in the worker's row; harmless when it is one already."""
    if storage.mark_dead(death.worker, death.reason, death.blame):
        emit("worker.dead", level=logging.WARNING, worker=death.worker, reason=death.reason)


def death_of(orphan: Orphan, *, direct: bool) -> Death:
    """Return a death that somebody has declared and not dealt with, as far as the row tells it.

    direct: whether the caller's own sessions are.
    """
    return Death(
        orphan.worker,
        orphan.reason,
        blamed=orphan.blame == Blame.JOBS,
        stopped=orphan.blame == Blame.STOPPED,
        direct=direct and orphan.direct,
    )


def recover(storage: Storage, death: Death, options: Options) -> Recovered:
    """Declare the worker dead, end its sessions, and give all its jobs a way on, as far as can be.

    One pass that waits for nothing. It is settled once no session and no job of the worker is left;
    until then (a session is still ending, a row is locked or refused) call again in a moment.
    """
    declare(storage, death)
    ends_sessions = options.end_sessions and death.direct
    sessions = storage.end_sessions([death.worker]) if ends_sessions else 0
    held = storage.running_of([death.worker])
    done = release(storage, held, death, options) if held else Recovered()
    is_left = bool(sessions or (held and storage.running_of([death.worker])))
    return replace(done, is_settled=not is_left)


def release(storage: Storage, held: Sequence[Held], death: Death, options: Options) -> Recovered:
    """Lead the jobs of a dead worker on, in one guarded batch; announce what is final."""
    endings = [_ending(job, death, options) for job in held]
    counts = Counter[str]()
    for job, ending in _written(storage, held, endings):
        if ending.state == State.READY and ending.outcome is None:
            counts["released"] += 1
            continue
        counts[ending.state] += 1
        _announce(job, ending)
    admit(storage, (job.limit_key for job in held))
    buried = counts[State.DEAD]
    return Recovered(counts["released"], counts.total() - counts["released"] - buried, buried)


def release_uncharged(storage: Storage, held: Sequence[Held]) -> int:
    """Give back jobs whose code never started, from a worker that is alive; return how many."""
    done = _written(storage, held, [_unharmed(job) for job in held])
    for job, ending in done:
        if ending.state == State.CANCELLED:
            _announce(job, ending)
    admit(storage, (job.limit_key for job in held))
    return len(done)


def reap_overdue(storage: Storage, held: Sequence[Held], options: Options) -> Recovered:
    """Take jobs that are well past their deadline, also from live workers: a time-out."""
    endings = [_timed_out(job, options) for job in held]
    done = _written(storage, held, endings)
    for job, ending in done:
        _announce(job, ending)
    admit(storage, (job.limit_key for job in held))
    buried = sum(ending.state == State.DEAD for _, ending in done)
    return Recovered(0, len(done) - buried, buried)


def _written(
    storage: Storage, held: Sequence[Held], endings: Sequence[Ending]
) -> list[tuple[Held, Ending]]:
    """Write endings; return what was written, as it was; tell of other jobs that gave way.

    A job whose unique key another holds has been cancelled, whatever its ending said. What is left
    out here (locked, refused, or its twin is just being made) still runs under the dead worker: the
    next round finds it. Raise the error if the database is away.
    """
    unmatched: set[Fenced] = set()
    is_refused = False
    superseded: dict[UUID, EndedJob] = {}

    def write(part: Sequence[tuple[Held, Ending]]) -> None:
        moves = storage.end_many([ending for _, ending in part])
        unmatched.update(moves)
        superseded.update((job.id, job) for job in moves.superseded)

    def refused(one: tuple[Held, Ending], error: DatabaseError) -> None:
        nonlocal is_refused
        is_refused = True
        job, _ = one
        unmatched.add((job.id, job.fence))
        if not may_pass(error):
            _tell_refused(job, error)

    pairs = list(zip(held, endings, strict=True))
    write_in_halves(pairs, write, refused)
    if is_refused:
        unmatched -= _written_before(
            storage, [p for p in pairs if (p[0].id, p[0].fence) in unmatched]
        )
    ours = {ending.id for ending in endings}
    announce_superseded([job for job in superseded.values() if job.id not in ours])
    return [
        (job, as_superseded(ending) if job.id in superseded else ending)
        for job, ending in pairs
        if (job.id, job.fence) not in unmatched
    ]


def _written_before(storage: Storage, pairs: Sequence[tuple[Held, Ending]]) -> set[Fenced]:
    """Return what a part of a batch wrote that was refused later on: it matched no second time.

    Jobs with a unique key are written after the others, in a transaction of their own.
    """
    found = storage.verdicts([job for job, _ in pairs])
    return {
        (job.id, job.fence)
        for job, ending in pairs
        if ending.outcome is not None and found[job.id, job.fence].outcome == ending.outcome
    }


def _tell_refused(job: Held, error: DatabaseError) -> None:
    """Tell once of a job that nothing can be written of; each round tries again."""
    fenced = job.id, job.fence
    if fenced in _told:
        return
    if len(_told) >= MAX_TOLD:
        _told.clear()
    _told.add(fenced)
    facts = {"job": job.id, "task": job.task, "error": line_of(error)}
    emit("job.not_recovered", level=logging.ERROR, **facts)


# --- decisions ----------------------------------------


def _ending(job: Held, death: Death, options: Options) -> Ending:
    """Return where a job of a dead worker goes: the whole rule of blame."""
    fenced = job.id, job.fence
    alias_options = job_options(job.backend, options)
    if death.started is not None and fenced not in death.started:
        if job.on_crash == "bury" and fenced in death.unwritten:
            error = describe_exception(WorkerLost(_UNWRITTEN.format(death.reason)), 512)
            return _lost(job, alias_options, State.DEAD, error, reason="worker lost")
        return _unharmed(job)
    if fenced in death.timed_out:
        return _timed_out(job, options)
    if death.stopped:
        why = "" if death.reason == "stopped" else f": {death.reason}"
        error = describe_exception(
            Stopped(f"The worker was stopped before the job had ended{why}."), 512
        )
        return _lost(job, alias_options, State.READY, error)
    error = describe_exception(
        WorkerLost(f"The worker that ran the job died: {death.reason}."), 512
    )
    if job.on_crash == "bury":
        return _lost(job, alias_options, State.DEAD, error, reason="worker lost", suspicion=1)
    if not death.blamed:
        return _lost(job, alias_options, State.READY, error)
    suspicions = job.suspicions + 1
    if job.alone or suspicions >= alias_options.suspicions:
        return _lost(job, alias_options, State.DEAD, error, reason="poison", suspicion=1)
    if suspicions < alias_options.suspicions - 1:
        return _lost(job, alias_options, State.READY, error, suspicion=1)
    delay = delay_seconds(_policy(job.task) or alias_options.retry, suspicions)
    return _lost(job, alias_options, State.RETRYING, error, suspicion=1, delay=delay, alone=True)


_UNWRITTEN = (
    "The job's code had ended, but the worker died before that was written: {}. Nobody knows any "
    "more how it had ended."
)


def _unharmed(job: Held) -> Ending:
    """Back to ready: rank, budget and suspicions stay, no attempt is on the books."""
    back = Ending(id=job.id, fence=job.fence, worker=job.worker, state=State.READY, alone=job.alone)
    return _obeying(job, back)


def _obeying(job: Held, ending: Ending) -> Ending:
    """Return how a job ends that somebody asked to cancel: it does not run again."""
    if job.cancel_reason is None or ending.state in FINISHED:
        return ending
    return replace(ending, state=State.CANCELLED, delay=None, reason=job.cancel_reason)


def _lost(
    job: Held,
    options: Options,
    state: State,
    error: ErrorText,
    *,
    reason: str = "",
    suspicion: int = 0,
    delay: float | None = None,
    alone: bool | None = None,
) -> Ending:
    ending = Ending(
        id=job.id,
        fence=job.fence,
        worker=job.worker,
        state=state,
        outcome=Outcome.LOST,
        delay=delay,
        error=error,
        reason=reason,
        suspicion=suspicion,
        alone=job.alone if alone is None else alone,
        aging_seconds=options.aging_seconds,
    )
    return _obeying(job, ending)


def _timed_out(job: Held, options: Options) -> Ending:
    alias_options = job_options(job.backend, options)
    error = TimeLimitExceeded("The attempt ran past its deadline and did not stop by itself.")
    policy = _policy(job.task) or alias_options.retry
    delay = next_try(job.failures, job.max_attempts, policy, error)
    out = delay is None
    ending = Ending(
        id=job.id,
        fence=job.fence,
        worker=job.worker,
        state=State.DEAD if out else State.RETRYING,
        outcome=Outcome.TIMED_OUT,
        charged=True,
        delay=delay,
        error=describe_exception(error, 512),
        reason="out of attempts" if out else "",
        alone=job.alone,
        aging_seconds=alias_options.aging_seconds,
    )
    return _obeying(job, ending)


def _policy(task_name: str) -> RetryPolicy | None:
    """Return the task's own back-off if the task can be found in this process."""
    from jobqueue.tasks import registry

    try:
        return registry.get(task_name).retry
    except TaskNotRegistered:
        return None
    except Exception:
        logger.exception("The module of task %s cannot be imported", task_name)
        return None


def _announce(job: Held, ending: Ending) -> None:
    level = logging.ERROR if ending.state == State.DEAD else logging.WARNING
    emit(
        "job.reaped",
        level=level,
        job=job.id,
        task=job.task,
        outcome=ending.outcome,
        state=ending.state,
        reason=ending.reason,
    )
    if ending.state == State.DEAD:
        announce_death(job.id, job.task, ending.reason)
    if ending.state in FINISHED:
        announce_finished(job.backend, job.id)
