"""The beat of a worker process: its lease, its life lock, and its own end when it lost them.

Two threads. The beat renews the lease on a connection of its own, only if the fetch loop has
turned since the last beat, and reconciles what the database thinks we hold with what we hold.
The watch looks at the age of the last success, counted from when its request was *sent*, on a
clock that also runs while the machine sleeps; past the lease this process is dead to the others,
and it exits: threads cannot be stopped, so there is no coming back.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Protocol

from jobqueue.engine.environment import Environment
from jobqueue.engine.proof import backend_pid
from jobqueue.engine.recovery import release_uncharged
from jobqueue.events import emit, line_of
from jobqueue.runtime.exit_codes import LEASE_LOST
from jobqueue.storage import storage_for
from jobqueue.storage.connections import discard
from jobqueue.storage.records import Fenced

logger = logging.getLogger("jobqueue")

RELOCK_PAUSE_SECONDS = 0.1
"""Pause between tries to get the beat's session back; the life lock must be held again within
half a second of losing it, before two looks of a reaper can miss it."""


def boot_seconds() -> float:
    """Return seconds on a clock that never steps and runs while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Holder(Protocol):
    """The worker, as its beat sees it."""

    def held(self) -> set[Fenced]:
        """Return the jobs (id, fence) that this process holds."""

    def abandon(self, fenced: Fenced) -> None:
        """Tell the run of a job that its row is no longer ours."""

    def ask_to_stop(self, fenced: Fenced, reason: str) -> None:
        """Tell the run of a job that somebody asked for it to be cancelled."""

    def drain(self) -> None:
        """Claim nothing more, end the jobs in hand and exit."""


class Heartbeat:
    """Renews one worker's lease until closed."""

    def __init__(
        self, environment: Environment, holder: Holder, on_lost: Callable[[str], None]
    ) -> None:
        self._environment = environment
        self._options = environment.options
        self._holder = holder
        self._on_lost = on_lost
        self._connection = environment.open_connection(
            statement_timeout=environment.options.lease_seconds / 3
        )
        self._one_host = storage_for(self._connection, self._options).one_host
        self._loop_turned = True
        self._has_turned = False
        self._last_success = boot_seconds()
        self._not_held: set[Fenced] = set()
        self._strangers: set[Fenced] = set()
        self._closing = threading.Event()
        self._is_failing = False
        self._is_lost = False
        self._is_draining = False
        self._threads: list[threading.Thread] = []
        self._has_life_lock = False
        self._sessions: set[int] = set()

    def hold_life_lock(self) -> None:
        """Take the life lock, before the worker's row exists: without it a row is a dead one's."""
        try:
            self._take_life_lock()
        except Exception:
            self._drop_session()
            raise

    def start(self) -> None:
        """Beat and watch in threads, once the worker is registered."""
        self._last_success = boot_seconds()
        for target in (self._beat_forever, self._watch_forever):
            thread = threading.Thread(target=target, name="jobqueue-heartbeat", daemon=True)
            thread.start()
            self._threads.append(thread)

    def loop_turned(self) -> None:
        """Note that the fetch loop lives; once it has begun, no beat is sent without it."""
        self._loop_turned = self._has_turned = True

    def close(self) -> None:
        """Stop beating, after the last job has ended."""
        self._closing.set()
        for thread in self._threads:
            thread.join(self._options.heartbeat_seconds + 1)
        discard(self._connection)

    @property
    def age(self) -> float:
        """Seconds since the last renewal that succeeded was sent."""
        return boot_seconds() - self._last_success

    def has_lease(self) -> bool:
        """Return whether the others may still think this process alive."""
        began = bool(self._threads)
        return self._one_host or not began or self.age <= self._options.lease_seconds

    # --- beat ----------------------------------------

    def _beat_forever(self) -> None:
        while not self._closing.is_set():
            try:
                if self._loop_turned or not self._has_turned or self._one_host:
                    self._loop_turned = False
                    self._beat()
                self._take_life_lock()
                self._recovered()
                self._wait(self._options.heartbeat_seconds)
            except Exception as error:
                self._failed(error)
                self._closing.wait(RELOCK_PAUSE_SECONDS)

    def _beat(self) -> None:
        storage = storage_for(self._connection, self._options)
        sent = boot_seconds()
        identity = self._environment.identity
        renewal = storage.renew_worker(
            identity, self._options.lease_seconds, self._environment.direct
        )
        if renewal is None:
            self._lost("its row says dead")
            return
        self._last_success = sent
        if renewal.draining:
            self._drain()
        self._reconcile(storage.running_of([identity]))

    def _drain(self) -> None:
        """Do as an operator has asked for in the worker's row."""
        if not self._is_draining:
            self._is_draining = True
            emit("process.draining", worker=self._environment.identity)
            self._holder.drain()

    def _reconcile(self, rows: list) -> None:  # type: ignore[type-arg]
        """Release rows that are ours by name but not held; abandon runs whose row is gone.

        Only what is so in two beats: a claim's answer may be on its way, an end just written.
        """
        storage = storage_for(self._connection, self._options)
        held = self._holder.held()
        by_fence = {(row.id, row.fence): row for row in rows}
        not_held = set(by_fence) - held
        lost_claims = not_held & self._not_held
        if lost_claims:
            release_uncharged(storage, [by_fence[key] for key in lost_claims])
            emit("claims.released", level=logging.WARNING, count=len(lost_claims))
        self._not_held = not_held - lost_claims
        strangers = held - set(by_fence)
        for fenced in strangers & self._strangers & self._holder.held():
            self._holder.abandon(fenced)
        self._strangers = strangers
        for row in rows:
            if row.cancel_reason is not None:
                self._holder.ask_to_stop((row.id, row.fence), row.cancel_reason)

    # --- the beat's session ----------------------------------------

    def _take_life_lock(self) -> None:
        """Hold the life lock, unless it is held already or nobody could trust it.

        A session that we lost may live on in the server, holding the lock until it notices: it is
        ended first. Otherwise the lock would be missed, some time later, while we are well.
        """
        if self._has_life_lock or not (self._environment.direct or self._one_host):
            return
        storage = storage_for(self._connection, self._options)
        self._connection.ensure_connection()
        pid = backend_pid(self._connection)  # a broken session no longer knows it
        for lost in self._sessions:
            storage.end_session(lost, self._environment.identity)
        if pid is not None:
            self._sessions.add(pid)
        storage.hold_life_lock(self._environment.identity)
        self._has_life_lock = True
        self._sessions &= {pid}

    def _drop_session(self) -> None:
        discard(self._connection)
        self._has_life_lock = False

    def _wait(self, seconds: float) -> None:
        """Wait for the next beat, watching the session's socket: its loss must not go unseen."""
        session = self._connection.connection
        if not self._environment.direct or session is None:
            self._closing.wait(seconds)
            return
        poll = select.poll()  # select() takes no descriptor from 1,024 on
        poll.register(session.fileno(), select.POLLIN)
        until = time.monotonic() + seconds
        while not self._closing.is_set() and (left := until - time.monotonic()) > 0:
            if poll.poll(min(left, 0.25) * 1_000):
                storage_for(self._connection, self._options).is_direct()  # raises if it is gone
                return

    def _failed(self, error: Exception) -> None:
        """Get the session, and with it the life lock, back at once."""
        if not self._is_failing:
            self._is_failing = True
            emit("heartbeat.failing", level=logging.WARNING, error=line_of(error))
        if self._one_host:
            return
        self._drop_session()
        try:
            self._take_life_lock()
            self._loop_turned = True  # the renewal itself follows at once
        except Exception:
            logger.debug("The beat's session is not back yet", exc_info=True)

    def _recovered(self) -> None:
        if self._is_failing:
            self._is_failing = False
            emit("heartbeat.recovered")

    # --- watch ----------------------------------------

    def _watch_forever(self) -> None:
        if self._one_host:
            return
        pause = min(self._options.lease_seconds / 20, 0.5)
        while not self._closing.wait(pause):
            if self.age > self._options.lease_seconds:
                self._lost(f"no renewal for {self.age:.1f} s")
                return

    def _lost(self, why: str) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        emit("worker.lease_lost", level=logging.ERROR, worker=self._environment.identity, why=why)
        self._on_lost(why)
        if self._options.self_exit:
            emit("worker.self_exit", level=logging.ERROR, worker=self._environment.identity)
            logging.shutdown()
            os._exit(LEASE_LOST)
