"""Stopping the code of a run from outside: an exception in its thread, or a cancelled coroutine.

A thread is interrupted by an asynchronous exception, which lands between any two bytecodes and
never inside C code. It may not land in the finish, nor in the next job (seen without what follows:
28 % landed after the commit), so it is aimed at one run: its state holds the thread only while the
job's code runs (`arm` … `disarm`), and a sender looks there between raising and lowering a flag
that `disarm` waits for. Not a lock: the very exception could leave the job's thread holding it.
What was sent and has not landed by then is taken back.

A thread's sessions are closed where the exception lands: it may have cut a conversation with the
server in the middle. So nothing that an atomic task wrote can commit after it, also if the task
catches it and goes on; a task with atomic=False goes on with new sessions.

One exception at most for each run: the supervisor ends what goes on in spite of it.
"""

from __future__ import annotations

import asyncio
import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from jobqueue.engine.hygiene import close_sessions, connections_of
from jobqueue.engine.run_state import RunState, Stop
from jobqueue.exceptions import Cancel, RunAbandoned, Steering, TimeLimitExceeded
from jobqueue.storage.connections import cancel_statement

SENDER_SECONDS = 5.0
"""Longest wait for a sender: it waits for no more than a request to cancel a statement."""


# --- the job's thread or task ----------------------------------------


def arm(run: RunState) -> None:
    """Let the run's code be interrupted, in this thread, from now on."""
    run.target = get_ident()


def disarm(run: RunState) -> None:
    """Let the run be interrupted no more, in its own thread; raise what lands here.

    Once this has returned or raised, nothing lands in this thread any more.
    """
    run.target = None
    if run.sending or run.sent is not None:
        _settle(run)


def _settle(run: RunState) -> None:
    """Wait for a sender that may have seen the target, then take back what has not landed.

    Raise what lands meanwhile. A sender that takes longer has sent its exception before, and is
    at the cancelling of a statement.
    """
    before = run.stopped
    while True:
        try:
            give_up = time.monotonic() + SENDER_SECONDS
            while run.sending and time.monotonic() < give_up:
                time.sleep(0.001)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(get_ident()), None)
            break
        except (TimeLimitExceeded, RunAbandoned):
            continue  # landed here: `stopped` says so
    run.sent = run.stopped
    if run.stopped is not before:
        raise interruption(run)


@contextmanager
def uninterrupted(run: RunState) -> Iterator[None]:
    """Let nothing land in the block; interruptions that it holds up come after it."""
    is_armed = isinstance(run.target, int)  # a coroutine is interrupted at an await, never in here
    if is_armed:
        disarm(run)
    try:
        yield
    finally:
        if is_armed and not run.committed:
            arm(run)


def interruption(run: RunState) -> BaseException:
    """Return the error that stands for what stopped the run."""
    if run.stopped is Stop.ASKED:
        return Cancel(run.cancel_reason)
    kind = RunAbandoned if run.stopped is Stop.ABANDONED else TimeLimitExceeded
    return kind(_message(run, run.stopped))


def meaning_of(run: RunState, error: BaseException) -> BaseException:
    """Return what an error of the run's code means if the run was stopped.

    What a task raises to steer itself stands. A cancelled coroutine was cancelled by us; and once
    a time limit was passed, whatever came of that is a time-out.
    """
    if run.stopped is None or isinstance(error, Steering | TimeLimitExceeded | RunAbandoned):
        return error
    if run.stopped is Stop.ASKED and not isinstance(error, asyncio.CancelledError):
        return error
    meant = interruption(run)
    meant.__cause__ = error
    return meant


# --- whoever stops it ----------------------------------------


def interrupt(run: RunState, stop: Stop) -> bool:
    """Stop the code of a run, from another thread; return whether anything was sent."""
    if isinstance(run.target, asyncio.Task):
        return _interrupt_task(run, run.target, stop)
    if stop is Stop.ASKED:
        return False  # `def` code asks `context.is_cancelled`
    return _interrupt_thread(run, stop)


def _interrupt_thread(run: RunState, stop: Stop) -> bool:
    if run.sent is not None:
        return False
    run.sending = True
    try:
        thread = run.target
        if not isinstance(thread, int):
            return False
        run.sent = stop
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), ctypes.py_object(_aimed_at(run, stop))
        )
        for connection in connections_of(thread):
            if run.stopped is None:  # else it has landed: what runs now is the task's last words
                cancel_statement(connection)
        return True
    finally:
        run.sending = False


def _aimed_at(run: RunState, stop: Stop) -> type[BaseException]:
    """Return the class to raise in the run's thread, which makes the instance where it lands."""
    base = TimeLimitExceeded if stop is Stop.TIME_LIMIT else RunAbandoned

    class Aimed(base):  # type: ignore[valid-type,misc] # a class made for one run
        def __init__(self) -> None:
            super().__init__(_message(run, stop))
            run.stopped = stop
            close_sessions()

    Aimed.__module__ = base.__module__
    Aimed.__name__, Aimed.__qualname__ = base.__name__, base.__qualname__
    return Aimed


def _message(run: RunState, stop: Stop | None) -> str:
    if stop is Stop.ABANDONED:
        return "The job was taken from this run: cancelled by force, or past its deadline."
    if stop is Stop.ASKED:
        return run.cancel_reason or ""
    return f"The attempt has run for {run.age_seconds:.1f} s, which is longer than it may."


def _interrupt_task(run: RunState, task: asyncio.Task[None], stop: Stop) -> bool:
    if run.sent is not None and run.sent >= stop:
        return False
    run.sent = stop

    def cancel() -> None:  # in the loop's thread, where the run's code is at an await
        if run.target is task and (run.stopped is None or run.stopped < stop):
            run.stopped = stop
            task.cancel(_message(run, stop))

    try:
        task.get_loop().call_soon_threadsafe(cancel)
    except RuntimeError:
        return False  # the loop has ended
    return True
