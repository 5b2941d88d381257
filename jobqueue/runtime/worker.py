"""A worker process: it claims jobs, runs them in slots, and writes down how they ended.

One loop: flush the ends, claim for the free slots (`jobqueue.runtime.claiming`), give back what
could not start, wait for a wake, a hint or the poll. It never runs a job itself, so a beat can
trust that a turning loop means a living process.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from django.db import Error

from jobqueue import __version__, hints, signals
from jobqueue.conf import ASYNC_SLOTS, options_for
from jobqueue.engine import delivery, log_capture
from jobqueue.engine.completion import flush
from jobqueue.engine.environment import Environment
from jobqueue.engine.limits import seed
from jobqueue.engine.middleware import Middleware
from jobqueue.engine.outcomes import Ended
from jobqueue.engine.runs import Run, prepare
from jobqueue.events import emit, line_of
from jobqueue.runtime import fork
from jobqueue.runtime.blocking_claim import BlockingClaim
from jobqueue.runtime.claiming import Claimer
from jobqueue.runtime.code_files import CodeFiles
from jobqueue.runtime.exit_codes import CLEAN, LEASE_LOST, RECYCLED
from jobqueue.runtime.heartbeat import Heartbeat
from jobqueue.runtime.held_jobs import HeldJobs
from jobqueue.runtime.ledger import Counters, Ledger
from jobqueue.runtime.logs import configure
from jobqueue.runtime.recycling import Recycling
from jobqueue.runtime.reporter import Reporter
from jobqueue.runtime.slots import AsyncSlots, Finished, Outbox, ThreadSlots
from jobqueue.runtime.spec import ChildSpec
from jobqueue.runtime.stop_orders import ignore_signals, obey
from jobqueue.runtime.watchdog import Watchdog
from jobqueue.states import Blame
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import discard, prepare_process
from jobqueue.storage.errors import may_pass
from jobqueue.storage.records import Claim, NewWorker
from jobqueue.tasks import autodiscover, registry

logger = logging.getLogger("jobqueue")

MAX_BACKOFF_SECONDS = 5.0
"""Longest pause between tries while the database is away."""


class Worker:
    """One worker process; `run` returns its exit code."""

    def __init__(self, spec: ChildSpec) -> None:
        configure(spec.log_format, spec.log_level)
        self.spec = spec
        self.options = options_for(spec.backend)
        self._alive = True
        self.environment = Environment(
            identity=spec.identity_id,
            options=self.options,
            direct=spec.direct,
            is_alive=lambda: self._alive,
        )
        prepare_process(
            self.options.database, spec.identity_id, self.options.lease_seconds, spec.direct
        )
        fork.install()
        autodiscover(self.options)
        log_capture.install()
        self.middleware = Middleware(self.options.middleware)
        self._wake = threading.Event()
        self._ledger = Ledger(spec.ledger_fd, spec.ledger_capacity)
        self._outbox = Outbox(self._wake)
        self._threads = ThreadSlots(spec.threads, self._ledger, self._outbox, self._make)
        self._coroutines = AsyncSlots(
            1 if spec.alone else ASYNC_SLOTS, self._ledger, self._outbox, self._make
        )
        self._held = HeldJobs(self.drain)
        self._connection = self.environment.open_connection()
        self._heartbeat = Heartbeat(self.environment, self._held, self._on_lease_lost)
        self._reporter = Reporter(self.environment)
        self._watchdog = Watchdog(self._held.runs, self._ledger, self._heartbeat.has_lease)
        self._delivery = delivery.begin()
        self._stop = threading.Event()
        self._is_spent = False
        self._is_leaving = False
        self._recycling = Recycling(
            spec.max_jobs, spec.max_memory_bytes, CodeFiles() if spec.reload else None
        )
        self._claimer = Claimer(
            spec,
            self.options,
            {name: registry.get(name) for name in registry.names()},
            self._threads,
            self._coroutines,
            self._held,
            self._recycling,
            BlockingClaim(
                self.environment,
                spec.backend,
                self._wake.set,
                lambda: self._threads.running < self._threads.count,
            ),
        )
        self._backoff = 0.0
        self._counts = Counters()

    # --- life ----------------------------------------

    def run(self) -> int:
        """Register, work until told to stop, drain, and say goodbye."""
        ignore_signals()
        self._watchdog.start()
        obey(self.spec.control_fd, self.drain, self.options.grace_seconds)
        self._until_possible(self._heartbeat.hold_life_lock)
        self._until_possible(self._register)
        self._heartbeat.start()
        self._reporter.start()
        self._threads.start()
        if self._claimer.has_coroutines:
            self._coroutines.start()
        self._listener = hints.listen(self.spec.backend, self.spec.queues, self._on_hint)
        self._listener.start()
        signals.process_started.send_robust(
            sender=Worker, worker=self.spec.identity_id, queues=self.spec.queues
        )
        emit("process.started", worker=self.spec.identity_id, pid=os.getpid())
        self._work()
        return self._goodbye()

    def _work(self) -> None:
        while not self._is_done():
            self._wake.clear()
            try:
                busy = self.run_once()
                self._recovered()
            except Error as error:
                self._failed(error)
                continue
            if not busy:
                self._wake.wait(self._pause())

    def _pause(self) -> float:
        """Seconds until the next look, but the loop turns at least twice for every beat."""
        return min(self._claimer.rest_seconds + 0.001, self.options.heartbeat_seconds / 2)

    def run_once(self) -> bool:
        """One turn; return whether there was work, so that the next turn should come at once."""
        self._heartbeat.loop_turned()
        claimed = self._claimer.collect(self._storage(), is_ending=self._is_ending)
        flushed = self._flush()
        self._claimer.open_rates(self._storage())
        self._leave_if_due()
        if self._is_ending:
            self._listener.want(False)
        else:
            claimed += self._claim()
        self._claimer.give_back(self._storage(), all_of_them=self._stop.is_set())
        self._publish(claimed, flushed)
        return bool(claimed or len(self._outbox))

    def _claim(self) -> int:
        self._claimer.discover(self._storage())
        if self._delivery.is_behind:
            return 0
        if self.spec.alone:
            claimed = self._claimer.claim_alone(self._storage())
            self._is_spent = True  # one suspect, then this process ends
            return claimed
        if len(self._outbox) >= self.options.batch or not self._has_entries:
            return 0  # ends are written first: more of them would find no room in the ledger
        return self._claimer.claim(self._storage(), self._listener)

    @property
    def _has_entries(self) -> bool:
        """Whether the ledger has one for every job of a claim: ends put off keep theirs."""
        slots = self._threads.count + self._coroutines.count
        return self._ledger.room - self._threads.waiting >= self.options.batch + slots

    @property
    def _is_ending(self) -> bool:
        return self._stop.is_set() or self._is_spent or self._is_leaving

    def _is_done(self) -> bool:
        return (
            self._is_ending and not self._held and not len(self._outbox) and self._delivery.is_idle
        )

    def _leave_if_due(self) -> None:
        """Claim nothing more once this process is to make room for a new one."""
        if self._is_ending:
            return
        why = self._recycling.why()
        if why:
            self._is_leaving = True
            emit("process.recycling", worker=self.spec.identity_id, why=why, jobs=len(self._held))

    def _goodbye(self) -> int:
        self._listener.stop()
        self._threads.stop(1.0)
        if self._claimer.has_coroutines:
            self._coroutines.stop(1.0)
        self._reporter.stop()
        delivery.end(1.0)
        signals.process_stopping.send_robust(sender=Worker, worker=self.spec.identity_id)
        self._heartbeat.close()
        with suppress(Error):
            self._storage().mark_dead(self.spec.identity_id, "stopped", Blame.STOPPED)
        emit("process.stopped", worker=self.spec.identity_id, pid=os.getpid())
        self.environment.close()
        discard(self._connection)
        code = RECYCLED if self._is_leaving else CLEAN
        self._ledger.say_farewell(code)
        return code

    def _register(self) -> None:
        storage = self._storage()
        storage.register_worker(
            NewWorker(
                id=self.spec.identity_id,
                kind="worker",
                name=self.spec.name,
                host=socket.gethostname(),
                pid=os.getpid(),
                supervisor=UUID(self.spec.supervisor),
                backend=self.spec.backend,
                version=__version__,
                lease_seconds=self.options.lease_seconds,
                queues=self.spec.queues,
                tasks=tuple(sorted(self._claimer.tasks)),
                slots=self.spec.threads,
                direct=self.spec.direct,
            )
        )
        seed(storage, self._claimer.tasks.values(), self.spec.backend, self.options)

    def _make(self, claim: Claim) -> Run | Ended:
        """Return the run of a claim, in the slot that runs it."""
        run = prepare(claim, self._claimer.tasks[claim.task], self.environment, self.middleware)
        if isinstance(run, Run):
            self._held[claim.id] = (claim.fence, run)
        return run

    # --- ends ----------------------------------------

    def _flush(self) -> int:
        finished = self._outbox.take(self.options.batch)
        if not finished:
            return 0
        try:
            left = flush(self._storage(), [ended for ended, _ in finished], self.environment)
        except Error:
            self._outbox.put_back(finished)
            raise
        again = {id(ended) for ended in left}
        self._outbox.put_off([item for item in finished if id(item[0]) in again])
        written = [item for item in finished if id(item[0]) not in again] if again else finished
        self._forget(written)
        self._claimer.have_ended(self._storage(), written)
        return len(written)

    def _forget(self, written: list[Finished]) -> None:
        succeeded = failed = 0
        for ended, entry in written:
            self._held.pop(ended.claim.id, None)
            self._ledger.clear(entry)
            succeeded += ended.is_success
            failed += ended.failure is not None and not ended.is_success
        counts = self._counts
        self._counts = replace(
            counts, succeeded=counts.succeeded + succeeded, failed=counts.failed + failed
        )

    def _on_lease_lost(self, why: str) -> None:
        if self.options.self_exit:
            self._alive = False
            self._ledger.say_farewell(LEASE_LOST)

    # --- waking, stopping ----------------------------------------

    def _on_hint(self, queue: str) -> None:
        self._claimer.hinted()
        self._wake.set()

    def drain(self) -> None:
        """Claim nothing more, end the jobs in hand and exit; harmless when called again."""
        self._stop.set()
        self._wake.set()

    # --- plumbing ----------------------------------------

    def _storage(self) -> Storage:
        return storage_for(self._connection, self.options)

    def _until_possible(self, action: object) -> None:
        while not self._stop.is_set():
            try:
                action()  # type: ignore[operator]
                return
            except Error as error:
                self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Drop the session and wait a jittered, bounded while; say so once."""
        if not may_pass(error):
            raise error
        logger.debug("The fetch loop failed", exc_info=error)
        discard(self._connection)
        if not self._backoff:
            emit("database.away", level=logging.WARNING, error=line_of(error))
        self._backoff = min(max(self._backoff * 2, 0.1), MAX_BACKOFF_SECONDS)
        self._heartbeat.loop_turned()
        time.sleep(self._backoff * random.uniform(0.5, 1.0))

    def _recovered(self) -> None:
        if self._backoff:
            self._backoff = 0.0
            emit("database.back")

    def _publish(self, claimed: int, flushed: int) -> None:
        if claimed or flushed or self._held or len(self._outbox):
            self._claimer.keep_looking()
        self._counts = replace(
            self._counts,
            claimed=self._counts.claimed + claimed,
            running=len(self._held),
            empty_looks=self._claimer.empty_looks,
            is_ready=1,
            is_leaving=int(self._is_leaving),
        )
        self._ledger.count(self._counts)
