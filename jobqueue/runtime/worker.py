"""A worker process: it claims jobs, runs them in slots, and writes down how they ended.

This is where a claim happens (`Worker._claim`). One loop: flush the ends, claim for the free
slots, give back what could not start, wait for a wake, a hint or the poll. It never runs a job
itself, so a beat can trust that a turning loop means a living process.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from django.db import Error

from jobqueue import __version__, hints, signals
from jobqueue.conf import ASYNC_SLOTS, RELEASE_UNSTARTED_SECONDS, options_for
from jobqueue.engine import delivery, log_capture
from jobqueue.engine.completion import announce_superseded, flush
from jobqueue.engine.environment import Environment
from jobqueue.engine.execution import Run, prepare
from jobqueue.engine.limits import Taken, Wish, admit, claim_free, seed, take, take_alone
from jobqueue.engine.middleware import Middleware
from jobqueue.engine.outcomes import Ended
from jobqueue.events import emit
from jobqueue.runtime import fork
from jobqueue.runtime.appetite import Appetite
from jobqueue.runtime.code_files import CodeFiles
from jobqueue.runtime.discovery import Discovery
from jobqueue.runtime.exit_codes import CLEAN, LEASE_LOST, RECYCLED
from jobqueue.runtime.heartbeat import Heartbeat
from jobqueue.runtime.holdings import Holdings
from jobqueue.runtime.ledger import ENOUGH_EMPTY_LOOKS, Counters, Ledger
from jobqueue.runtime.logs import configure
from jobqueue.runtime.lookout import Lookout
from jobqueue.runtime.openings import Openings
from jobqueue.runtime.orders import ignore_signals, obey
from jobqueue.runtime.recycling import Recycling
from jobqueue.runtime.reporter import Reporter
from jobqueue.runtime.slots import AsyncSlots, Finished, Outbox, ThreadSlots
from jobqueue.runtime.spec import ChildSpec
from jobqueue.runtime.watchdog import Watchdog
from jobqueue.states import Blame, State
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.connections import discard, prepare_process
from jobqueue.storage.errors import may_pass
from jobqueue.storage.records import Claim, Ending, NewWorker
from jobqueue.tasks import autodiscover, registry

logger = logging.getLogger("jobqueue")

UNTIL_EMPTY_POLL = 0.2
"""Seconds between two looks of a worker that is to stop when nothing is left."""
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
        self._tasks = {name: registry.get(name) for name in registry.names()}
        self._for_threads = self._lookout(is_async=False)
        self._for_loop = self._lookout(is_async=True)
        self._wake = threading.Event()
        self._ledger = Ledger(spec.ledger_fd, spec.ledger_capacity)
        self._outbox = Outbox(self._wake)
        self._threads = ThreadSlots(spec.threads, self._ledger, self._outbox, self._make)
        self._coroutines = AsyncSlots(
            1 if spec.alone else ASYNC_SLOTS, self._ledger, self._outbox, self._make
        )
        self._appetite = Appetite(spec.threads, self.options.batch)
        self._held = Holdings(self.drain)
        self._connection = self.environment.open_connection()
        self._heartbeat = Heartbeat(self.environment, self._held, self._on_lease_lost)
        self._reporter = Reporter(self.environment)
        self._watchdog = Watchdog(self._held.runs, self._ledger, self._heartbeat.has_lease)
        self._delivery = delivery.begin()
        self._openings = Openings()
        self._is_hinted = False
        self._heard_of: set[str] = set()
        self._discovery = Discovery()
        self._stop = threading.Event()
        self._is_spent = False
        self._is_leaving = False
        self._recycling = Recycling(
            spec.max_jobs, spec.max_memory_bytes, CodeFiles() if spec.reload else None
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
        if self._for_loop.tasks:
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
        rest = min(self._for_threads.rest_seconds, self._for_loop.rest_seconds)
        rest = min(rest, self._openings.next_seconds)
        return min(rest + 0.001, self.options.heartbeat_seconds / 2)

    def run_once(self) -> bool:
        """One turn; return whether there was work, so that the next turn should come at once."""
        self._heartbeat.loop_turned()
        flushed = self._flush()
        if due := self._openings.due():
            self._let_start(due)
            self._look_again()  # a queue may be among them
        self._leave_if_due()
        is_ending = self._is_ending
        if is_ending:
            self._listener.want(False)
        claimed = 0
        if not is_ending:
            self._discover()
            claimed = self._claim()
        self._give_back(0.0 if self._stop.is_set() else RELEASE_UNSTARTED_SECONDS)
        self._publish(claimed, flushed)
        return bool(claimed or len(self._outbox))

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
        if self._for_loop.tasks:
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
                tasks=tuple(sorted(self._tasks)),
                slots=self.spec.threads,
                direct=self.spec.direct,
            )
        )
        seed(storage, self._tasks.values(), self.spec.backend, self.options)

    # --- claim ----------------------------------------

    def _claim(self) -> int:
        """Claim for the free slots, and what will start within a moment; return how many."""
        if self._delivery.is_behind:
            return 0
        if self.spec.alone:
            return self._claim_alone()
        if len(self._outbox) >= self.options.batch:
            return 0  # ends are written first: more of them would find no room in the ledger
        running, waiting = self._threads.running, self._threads.waiting
        room = self._recycling.room(self._appetite.room(running, waiting))
        limited = self._appetite.limited_room(running, waiting, self._threads.waiting_first)
        claimed = self._fetch(self._for_threads, room, limited)
        room = min(self._coroutines.count - self._coroutines.running, self.options.batch)
        claimed += self._fetch(self._for_loop, self._recycling.room(room), room)
        self._listener.want(self._threads.running < self._threads.count)
        return claimed

    def _fetch(self, lookout: Lookout, room: int, limited_room: int) -> int:
        if room <= 0 or not lookout.is_due:
            return 0
        storage = self._storage()
        queues, floors = lookout.look(storage)
        taken = Taken()
        if queues:
            room += lookout.refused  # or they would keep their place before others for ever
            wish = Wish(
                self.spec.identity_id, queues, lookout.tasks, floors, self.spec.strict_order
            )
            if lookout.has_limited and limited_room > 0:
                taken = take(storage, wish, room, limited_room)
                lookout.learn(taken)
                self._openings.note(taken.opens)
            else:
                taken.claims = claim_free(storage, wish, room)
            self._share_hint(queues, is_full=len(taken) == room)
        if len(taken):
            lookout.found_something()
        elif lookout.found_nothing(storage, taken):
            self._wake.set()
        kept = self._take(taken)
        lookout.refused = min(len(taken) - kept, self._threads.count)
        if len(taken) and not kept:
            lookout.rest()  # all were handed back: claiming them again at once would go on for ever
        return kept

    def _share_hint(self, queues: list[str], *, is_full: bool) -> None:
        """Pass a hint on that led to a full batch: there may be work for another worker, too."""
        if not self.spec.queues and not self._heard_of.issuperset(queues):
            self._heard_of.update(queues)
            self._listener.watch(sorted(self._heard_of))
        if self._is_hinted and is_full:
            self._listener.pass_on(queues)
        self._is_hinted = False

    def _discover(self) -> None:
        """Take on tasks that jobs wait for and that could be imported after all."""
        found = self._discovery.run_once(self._storage(), self._tasks)
        if not found:
            return
        self._tasks = self._tasks | found
        for lookout, is_async in ((self._for_threads, False), (self._for_loop, True)):
            lookout.tasks = self._names(is_async=is_async)
        if self._for_loop.tasks:
            self._coroutines.start()
        self._storage().update_worker_tasks(self.spec.identity_id, sorted(self._tasks))
        seed(self._storage(), self._tasks.values(), self.spec.backend, self.options)

    def _claim_alone(self) -> int:
        queues, _ = self._for_threads.look(self._storage())
        wish = Wish(self.spec.identity_id, queues, sorted(self._tasks))
        taken = take_alone(self._storage(), wish)
        self._is_spent = True  # one suspect, then this process ends
        return self._take(taken)

    def _take(self, taken: Taken) -> int:
        """Hand claims to the slots; give back what must not wait or is held already."""
        back = [claim for claim in taken.limited if not self._put(claim, is_first=True)]
        back += [claim for claim in taken.claims if not self._put(claim)]
        self._release(back)  # without a hint: it would wake this very process
        self._recycling.took(len(taken) - len(back))
        return len(taken) - len(back)

    def _put(self, claim: Claim, *, is_first: bool = False) -> bool:
        """Hand a claim to a slot; return False if it is not to be kept."""
        is_async = self._tasks[claim.task].is_async  # a coroutine waits behind nobody
        if not (is_async or is_first or self._appetite.may_wait(claim, self._threads.waiting)):
            return False
        if claim.id in self._held:
            return False
        self._held[claim.id] = (claim.fence, None)
        if is_async:
            self._coroutines.put(claim)
        else:
            self._threads.put(claim, is_first=is_first)
        return True

    def _make(self, claim: Claim) -> Run | Ended:
        """Return the run of a claim, in the slot that runs it."""
        run = prepare(claim, self._tasks[claim.task], self.environment, self.middleware)
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
        for item in finished:
            if id(item[0]) not in again:
                self._forget(item)
        ended = (ended for ended, _ in finished if id(ended) not in again)
        self._let_start({one.claim.limit_key for one in ended})
        return len(finished) - len(left)

    def _let_start(self, keys: Iterable[str | None]) -> None:
        """Admit the next jobs of keys that have got room, and look for them."""
        admitted = admit(self._storage(), keys)
        self._openings.note(admitted.opens)
        if admitted.queues:
            self._look_again()
            hints.send(self.spec.backend, admitted.queues, self._connection)

    def _forget(self, item: Finished) -> None:
        ended, entry = item
        self._held.pop(ended.claim.id, None)
        self._ledger.clear(entry)
        self._for_threads.has_ended(ended.claim.queue)
        self._for_loop.has_ended(ended.claim.queue)
        if self._tasks[ended.claim.task].is_async:
            self._coroutines.done()
        else:
            self._appetite.learn(ended)
        if ended.is_success:
            self._count(succeeded=1)
        elif ended.failure is not None:
            self._count(failed=1)

    def _give_back(self, older_than: float) -> None:
        """Release claims that found no slot in time, so that an idle worker can have them."""
        claims = self._threads.take_back(older_than)
        try:
            self._release(claims)
        except Error:
            for claim in claims:
                self._threads.put(claim)  # still ours, as far as we know
            raise
        for claim in claims:
            self._held.pop(claim.id, None)
        if claims:
            self._recycling.took(-len(claims))
            self._appetite.gave_back()
        hints.send(self.spec.backend, {claim.queue for claim in claims}, self._connection)

    def _release(self, claims: list[Claim]) -> None:
        if not claims:
            return
        moves = self._storage().end_many(
            [
                Ending(id=c.id, fence=c.fence, worker=c.worker, state=State.READY, alone=c.alone)
                for c in claims
            ]
        )
        announce_superseded(moves.superseded)

    def _on_lease_lost(self, why: str) -> None:
        if self.options.self_exit:
            self._alive = False
            self._ledger.say_farewell(LEASE_LOST)

    # --- waking, stopping ----------------------------------------

    def _on_hint(self, queue: str) -> None:
        self._is_hinted = True
        self._look_again()
        self._wake.set()

    def _look_again(self) -> None:
        self._for_threads.hinted()
        self._for_loop.hinted()

    def drain(self) -> None:
        """Claim nothing more, end the jobs in hand and exit; harmless when called again."""
        self._stop.set()
        self._wake.set()

    def _names(self, *, is_async: bool) -> tuple[str, ...]:
        return tuple(sorted(n for n, task in self._tasks.items() if task.is_async == is_async))

    def _lookout(self, *, is_async: bool) -> Lookout:
        names = self._names(is_async=is_async)
        poll = self.options.poll_seconds
        return Lookout(
            names, self.spec.queues, min(poll, UNTIL_EMPTY_POLL) if self.spec.until_empty else poll
        )

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
            emit("database.away", level=logging.WARNING, error=str(error).split("\n")[0][:200])
        self._backoff = min(max(self._backoff * 2, 0.1), MAX_BACKOFF_SECONDS)
        self._heartbeat.loop_turned()
        time.sleep(self._backoff * random.uniform(0.5, 1.0))

    def _recovered(self) -> None:
        if self._backoff:
            self._backoff = 0.0
            emit("database.back")

    def _count(self, succeeded: int = 0, failed: int = 0) -> None:
        counts = self._counts
        self._counts = Counters(
            counts.claimed,
            counts.succeeded + succeeded,
            counts.failed + failed,
            counts.running,
            counts.empty_looks,
            1,
        )

    def _publish(self, claimed: int, flushed: int) -> None:
        counts = self._counts
        if claimed or flushed or self._held or len(self._outbox):
            self._for_threads.found_something()  # a job that has ended may have enqueued another
            self._for_loop.found_something()
        empty = [each.empty_looks for each in (self._for_threads, self._for_loop) if each.tasks]
        self._counts = Counters(
            counts.claimed + claimed,
            counts.succeeded,
            counts.failed,
            len(self._held),
            min(empty, default=ENOUGH_EMPTY_LOOKS),
            1,
            int(self._is_leaving),
        )
        self._ledger.count(self._counts)
