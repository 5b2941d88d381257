"""Tasks of tests/process: each leaves a note when it starts, and effects that can be counted."""

import asyncio
import gc
import json
import logging
import os
import re
import signal
import socket
import subprocess
import time
from collections import Counter
from contextlib import suppress
from contextvars import Context
from types import TracebackType

from django.db import connection

from jobqueue import task
from tests.app.models import Effect
from tests.process.folder import folder
from tests.waiting import wait_until


def leave_effect(context, label=""):
    Effect.objects.create(job_id=str(context.job_id), label=label)


def note(context, what="start"):
    folder().note(what, job=str(context.job_id), fence=context.fence)


@task(takes_context=True)
def write(context):
    """Write one effect."""
    note(context)
    leave_effect(context)


@task(takes_context=True)
def write_and_wait(context, gate):
    """Write, then wait at a gate with the transaction open."""
    note(context)
    leave_effect(context)
    note(context, "written")
    folder().wait_at(gate)


@task(takes_context=True)
def wait_and_write(context, gate):
    """Wait at a gate without having used the database, then write."""
    note(context)
    folder().wait_at(gate)
    leave_effect(context)


@task(takes_context=True, atomic=False)
def wait_and_commit(context, gate):
    """Wait without a transaction, then write and finish in one."""
    note(context)
    folder().wait_at(gate)
    with context.atomic():
        leave_effect(context)
        context.commit("committed")


@task(takes_context=True, atomic=False, limit=3)
def wait_under_a_limit(context, gate):
    """The same; three at a time."""
    note(context)
    folder().wait_at(gate)
    with context.atomic():
        leave_effect(context)
        context.commit()


@task(takes_context=True)
async def wait_in_coroutine(context, gate):
    """Wait in a coroutine, then write: not in the job's transaction, as there is none."""
    note(context)
    while not folder().is_open(gate):
        await asyncio.sleep(0.02)
    await Effect.objects.acreate(job_id=str(context.job_id))


@task(takes_context=True, atomic=False)
def spin_and_commit(context, gate):
    """Wait in a tight loop that never blocks."""
    note(context)
    while not folder().is_open(gate):
        pass
    with context.atomic():
        leave_effect(context)
        context.commit()


@task(takes_context=True, atomic=False)
def run_program_and_commit(context, gate):
    """Wait for a program that the job started."""
    note(context)
    path = folder().path / "gates" / gate
    subprocess.run(["sh", "-c", f"until [ -e {path} ]; do sleep 0.05; done"], check=True)
    with context.atomic():
        leave_effect(context)
        context.commit()


@task(takes_context=True)
def nothing_but_ask_signals(context):
    """Return the ignored and the blocked signals that a program which a job starts finds."""
    done = subprocess.run(["cat", "/proc/self/status"], capture_output=True, check=True)
    masks = dict(line.split(":\t") for line in done.stdout.decode().splitlines())
    return [int(masks["SigIgn"], 16), int(masks["SigBlk"], 16)]


@task(takes_context=True)
def nothing_but_ask_the_collector(context):
    """Return how many objects the collector of garbage never looks at."""
    return gc.get_freeze_count()


@task(takes_context=True)
def nothing(context):
    """Touch no database."""
    note(context)


@task(takes_context=True, atomic=False)
def nothing_plain(context):
    """Touch no database, not even by a transaction around nothing."""
    note(context)


@task(takes_context=True)
def kill_own_process(context):
    """A poison job: no worker survives it."""
    note(context)
    leave_effect(context)
    os.kill(os.getpid(), signal.SIGKILL)


@task(takes_context=True)
def fork_and_wait(context, gate):
    """Leave a copy of the process behind that outlives it, then wait."""
    note(context)
    leave_effect(context)
    if os.fork() == 0:
        note(context, "copy")
        folder().wait_at("copy")
        os._exit(0)
    folder().wait_at(gate)


@task(takes_context=True, atomic=False)
def nothing_but_what_a_copy_keeps(context):
    """Return what a forked copy has behind a session that nobody was told of, and behind sockets.

    In this order: the session, a socket on its way to a server, one of another server.
    """
    import psycopg  # not at each start of a worker on SQLite

    connection.ensure_connection()
    silent = psycopg.connect(**connection.get_connection_params())
    server = socket.create_server(("127.0.0.1", 0), backlog=0)
    queue = [socket.socket() for _ in range(3)]
    for each in queue:  # one is accepted, and the others are kept waiting
        each.setblocking(False)
        with suppress(BlockingIOError):
            each.connect(server.getsockname())
    asked = [silent.fileno(), queue[-1].fileno(), queue[0].fileno()]
    readable, writable = os.pipe()
    if os.fork() == 0:
        found = [os.readlink(f"/proc/self/fd/{descriptor}") for descriptor in asked]
        os.write(writable, json.dumps(found).encode())
        os._exit(0)
    found = json.loads(os.read(readable, 4096))
    for each in (silent, server, *queue):
        each.close()
    return found


@task(takes_context=True)
def nothing_but_end_a_copy(context):
    """Terminate a forked copy, as multiprocessing does; return how it ended."""
    copy = os.fork()
    if copy == 0:
        folder().wait_at("never")
    os.kill(copy, signal.SIGTERM)
    _, status = os.waitpid(copy, 0)
    return os.waitstatus_to_exitcode(status)


@task(takes_context=True)
def nothing_but_an_orphan(context):
    """Leave a process behind whose parent ends before it does."""
    subprocess.run(["sh", "-c", "sleep 0.1 &"], check=True)


@task(takes_context=True)
def nothing_but_exit(context, code):
    """Leave the process with the code of an end that a worker decides on itself."""
    note(context)
    os._exit(code)


@task(takes_context=True)
def return_twice(context):
    """Return from the function in a forked copy first, then in the process itself."""
    return _return_twice(context)


@task(takes_context=True, atomic=False)
def return_twice_plain(context):
    return _return_twice(context)


@task(takes_context=True)
async def return_twice_async(context):
    note(context)
    return _exit_code_of_copy()


@task(takes_context=True, atomic=False)
def commit_twice(context):
    """Commit in a forked copy first, then in the process itself."""
    note(context)
    code = _exit_code_of_copy()
    with context.atomic():
        leave_effect(context)
        context.commit(code)


def _return_twice(context):
    note(context)
    code = _exit_code_of_copy()
    if code is not None:
        leave_effect(context)
    return code


def _exit_code_of_copy():
    """Return None in a forked copy of this process, and its exit code in the process itself."""
    copy = os.fork()
    if copy == 0:
        return None
    _, status = os.waitpid(copy, 0)
    return os.waitstatus_to_exitcode(status)


@task(takes_context=True, atomic=False, timeout=0.5)
def overstay(context, gate):
    """Wait far longer than allowed, then write and finish in one transaction."""
    note(context)
    folder().wait_at(gate)
    with context.atomic():
        leave_effect(context)
        context.commit()


HANGING = {"timeout": 0.5, "max_attempts": 2}


@task(takes_context=True, **HANGING)
def sleep_for_an_hour(context):
    """Write, then sleep in C."""
    note(context)
    leave_effect(context)
    time.sleep(3600)


@task(takes_context=True, atomic=False, **HANGING)
def match_for_ever(context):
    """Match a pattern for longer than anybody lives, in C and holding the interpreter."""
    note(context)
    re.match(r"(a+)+$", "a" * 64 + "b")


@task(takes_context=True, atomic=False, **HANGING)
def read_a_silent_socket(context):
    """Wait for a peer that says nothing."""
    note(context)
    one, _other = socket.socketpair()
    one.recv(1)


@task(takes_context=True, atomic=False, **HANGING)
def swallow_everything(context):
    """Go on after whatever is raised."""
    note(context)
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


@task(takes_context=True, **HANGING)
async def block_the_loop(context):
    """Block the event loop, so that nothing can be cancelled in it."""
    note(context)
    time.sleep(3600)


@task(takes_context=True, atomic=False)
def sleep_unless_open(context, gate):
    """Sleep in C until the process ends, unless a gate is open."""
    note(context)
    if not folder().is_open(gate):
        time.sleep(3600)


@task(takes_context=True, atomic=False)
def wait_to_be_cancelled(context):
    """Ask whether to stop, as a well-behaved job does."""
    note(context)
    wait_until(lambda: context.is_cancelled, "a request to cancel")
    context.stop_if_cancelled()


@task(takes_context=True, on_crash="bury")
def kill_once(context):
    """Kill the worker, and never run again after it."""
    note(context)
    leave_effect(context)
    os.kill(os.getpid(), signal.SIGKILL)


@task(takes_context=True)
def nothing_but_report(context, gate):
    """Say how far the job has come, and wait."""
    note(context)
    context.progress(1, 4, "waiting")
    logging.getLogger("shop").warning("waiting at %s", gate)
    folder().wait_at(gate)
    context.progress(4, 4, "done")
    context.log.info("done")


@task(takes_context=True)
def nothing_but_ask_code(context):
    """Return what the project's code says now."""
    import changing

    return changing.VALUE


@task(takes_context=True, max_attempts=1)
def nothing_but_litter(context, number):
    """Log, report, and in every other case fail with large locals in a frame of the traceback."""
    ballast = [number] * 10_000
    context.progress(number, len(ballast))
    context.log.info("job %d", number)
    if number % 2:
        raise ValueError("on purpose")


@task(takes_context=True, max_attempts=1)
async def nothing_but_litter_in_coroutine(context, number):
    """The same in a coroutine."""
    nothing_but_litter.func(context, number)


@task(takes_context=True)
def nothing_but_count_objects(context):
    """Return how many objects of ours, errors, tracebacks and contexts live here, and are held."""
    from jobqueue.runtime.worker import Worker

    gc.unfreeze()  # it hides what was there when the worker started
    gc.collect()
    living = gc.get_objects()
    gc.freeze()
    types = [type(each) for each in living]
    ours = Counter(
        f"{one.__module__}.{one.__qualname__}"
        for one in types
        if str(one.__module__).startswith("jobqueue.")
        or issubclass(one, (TracebackType, Context, BaseException))
    )
    (worker,) = (each for each in living if type(each) is Worker)
    entries = {
        "held": len(worker._held.held()),
        "outbox": len(worker._outbox),
        "used entries of the ledger": worker._ledger.capacity - len(worker._ledger._free),
        "coroutines": len(worker._coroutines._tasks),
    }
    return ours | entries
