"""The outer process: servers for the run, the run itself, and nobody left behind.

Settings are read once, when Django starts, so the run is a second process that finds the
servers' addresses in its environment. When it is gone, however it went, what it started is
ended. The embedded servers end by themselves with this process, however it goes.
"""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from project.demo import plan as figures
from project.demo.crew import manage
from project.demo.interrupts import interrupted_once
from project.demo.options import (
    AUDIT_FAILED,
    AUDIT_PASSED,
    COULD_NOT_RUN,
    INTERRUPTED,
    DemoError,
    DemoOptions,
)
from project.demo.plan import Plan
from project.demo.sweep import TOKEN, sweep
from project.servers import PostgresServer, RedisServer, ServerError

DIRECTORY = "JOBQUEUE_DEMO_DIRECTORY"
CLEAN_UP_SECONDS = 40.0
"""How long the run may take to stop its processes once it is told to."""
POSTGRES_SCHEMES = ("postgres://", "postgresql://", "psql://", "pgsql://")


def launch(options: DemoOptions) -> int:
    """Run the demo on servers of its own, or on those of DATABASE_URL and REDIS_URL.

    Return its exit code: 0 if the audit found nothing. Raise DemoError if it could not run.
    """
    token = secrets.token_hex(8)
    with ExitStack() as stack:
        stack.enter_context(interrupted_once())
        directory = Path(tempfile.mkdtemp(prefix="jobqueue-demo-"))
        code = COULD_NOT_RUN
        try:
            environment = os.environ | engine_environment(options) | servers(stack)
            environment |= {TOKEN: token, DIRECTORY: str(directory)}
            code = run_inner(environment)
        finally:
            sweep(token)
            tidy(directory, keep=is_surprising(code, options))
    return code


def servers(stack: ExitStack) -> dict[str, str]:
    """Start the servers that the environment does not name; return their addresses.

    Only PostgreSQL will do: on SQLite a frozen worker holds the one write lock of them all.
    """
    database_url = os.environ.get("DATABASE_URL", "")
    redis_url = os.environ.get("REDIS_URL", "")
    if database_url and not database_url.startswith(POSTGRES_SCHEMES):
        raise DemoError("The demo needs PostgreSQL: unset DATABASE_URL, or let it name one.")
    try:
        if not database_url:
            print("Starting PostgreSQL …", flush=True)
            database_url = stack.enter_context(PostgresServer()).url
        if not redis_url and RedisServer.available():
            print("Starting Redis …", flush=True)
            redis_url = stack.enter_context(RedisServer()).url
    except ServerError as error:
        raise DemoError(str(error)) from error
    if not redis_url:
        print("No Redis here: hints go over PostgreSQL.", flush=True)
        return {"DATABASE_URL": database_url}
    return {"DATABASE_URL": database_url, "REDIS_URL": redis_url}


def engine_environment(options: DemoOptions) -> dict[str, str]:
    """Return the settings of all the demo's Django processes."""
    return {
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "DEBUG": "off",
        "SERVE_STATIC": "on",
        "LOG_LEVEL": "WARNING",  # Django reports each start and end of a task at INFO
        "PYTHONUNBUFFERED": "1",
        "JOBQUEUE_OPTIONS": json.dumps(Plan(options=options).engine_options),
        "ORDERS": str(options.orders),
        "KILL_EVERY": str(options.kill_every),
        "FAIL_RATE": str(options.fail_rate),
        "GUARD": "on" if options.guard else "off",
        "SEED": str(options.seed),
        "SHOP_FAIL_RATE": str(options.fail_rate),
        "SHOP_WORK_SECONDS": str(figures.WORK_SECONDS),
        "GATEWAY_TIMEOUT_SECONDS": str(figures.GATEWAY_TIMEOUT_SECONDS),
        "CHECKPOINT_SECONDS": str(figures.CHECKPOINT_SECONDS),
    }


def run_inner(environment: Mapping[str, str]) -> int:
    """Run the demo proper in this terminal and return its exit code, as a shell would."""
    inner = subprocess.Popen(manage("demo", "--inner"), env=environment)
    try:
        code = inner.wait()
    except KeyboardInterrupt:
        inner.terminate()  # nothing new where the terminal has told it already
        code = after_interrupt(inner.wait(CLEAN_UP_SECONDS))
        if code != INTERRUPTED:
            print("Stopped.", flush=True)
        return code
    return code if code >= 0 else 128 - code


def after_interrupt(code: int) -> int:
    """Return the exit code of a demo that was told to end, from that of the run.

    After the audit that is the way to end it, and the audit's answer stands. However else the run
    has ended, it was interrupted: it may have let go of its handlers by then.
    """
    return code if code in (AUDIT_PASSED, AUDIT_FAILED) else INTERRUPTED


def is_surprising(code: int, options: DemoOptions) -> bool:
    """Return whether this end of a run calls for a look at its logs."""
    expected = {AUDIT_PASSED, INTERRUPTED} if options.guard else {AUDIT_FAILED, INTERRUPTED}
    return code not in expected


def tidy(directory: Path, *, keep: bool) -> None:
    """Remove the run's files, or say where they are."""
    if keep and any(directory.iterdir()):
        print(f"The logs of all processes are in {directory}", flush=True)
    else:
        shutil.rmtree(directory, ignore_errors=True)
