"""``manage.py runworker``: run jobs."""

from __future__ import annotations

import logging
import socket
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

from jobqueue.compat import task_backends
from jobqueue.conf import Options, options_for
from jobqueue.exceptions import InvalidOptions
from jobqueue.runtime.exit_codes import MISCONFIGURED
from jobqueue.runtime.logs import configure
from jobqueue.runtime.supervisor import Supervisor, WorkerPlan
from jobqueue.storage.connections import is_direct
from jobqueue.tasks import autodiscover

SESSIONS_PER_PROCESS = 3
"""Beside one a thread: the fetch loop's, the beat's and the side connection's."""
SESSIONS_PER_SUPERVISOR = 4


class Command(BaseCommand):
    """Run worker processes until told to stop."""

    help = (
        "Run jobs. First TERM or INT: claim nothing more and let running jobs end; second: stop "
        "now, they run again elsewhere. Exit codes: 0 stopped cleanly, 1 jobs were cut off, "
        "78 settings or a module with tasks cannot be loaded."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--backend", default="default", help="alias in TASKS (default: default)")
        add("--queues", default="", help="comma separated; default: the alias' QUEUES")
        add("--processes", type=_positive, default=1, help="worker processes (default: 1)")
        add("--threads", type=_positive, default=4, help="threads a process (default: 4)")
        add("--name", default="", help="a label for logs and the admin; default: the host's name")
        add(
            "--no-maintenance",
            action="store_true",
            help="leave ticks, reaping and pruning to runscheduler and runreaper",
        )
        add("--until-empty", action="store_true", help="exit when nothing is ready or running")
        add("--health-file", type=Path, help="a file touched every second while all is well")
        add("--wait-for-migrations", action="store_true", help="wait until migrate has run")
        add_logging(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        configure(options["log_format"], options["log_level"])
        alias = options["backend"]
        engine_options = usable_options(alias)
        wait_for_schema(engine_options, wait=options["wait_for_migrations"])
        try:
            autodiscover(engine_options)
        except Exception:
            logging.getLogger("jobqueue").exception("A module with tasks cannot be imported")
            sys.exit(MISCONFIGURED)
        plan = WorkerPlan(
            backend=alias,
            queues=_queues(alias, options["queues"]),
            processes=options["processes"],
            threads=options["threads"],
            maintenance=not options["no_maintenance"],
            until_empty=options["until_empty"],
            health_file=options["health_file"],
            name=options["name"] or socket.gethostname(),
            log_format=options["log_format"],
            log_level=options["log_level"],
        )
        self._say_connections(plan)
        direct = is_direct(engine_options.database)
        connections.close_all()
        sys.exit(Supervisor(plan, engine_options, direct).run())

    def _say_connections(self, plan: WorkerPlan) -> None:
        count = plan.processes * (plan.threads + SESSIONS_PER_PROCESS) + SESSIONS_PER_SUPERVISOR
        self.stderr.write(
            f"{plan.processes} process(es) of {plan.threads} thread(s): up to {count} database "
            f"connections."
        )


def add_logging(parser: ArgumentParser) -> None:
    """Add the options about logs that all commands which run share."""
    parser.add_argument(
        "--log-format", choices=("auto", "text", "json"), default="auto", help="default: auto"
    )
    parser.add_argument("--log-level", default="info", help="default: info")


def usable_options(alias: str) -> Options:
    """Return the alias' options; raise CommandError that says what is wrong with them."""
    try:
        backend = task_backends[alias]
        if not getattr(backend, "is_jobqueue", False):
            raise CommandError(f"TASKS[{alias!r}] does not use jobqueue's backend.")
        return options_for(alias)
    except InvalidOptions as error:
        raise CommandError(str(error)) from error
    except Exception as error:
        if isinstance(error, CommandError):
            raise
        raise CommandError(f"TASKS[{alias!r}] cannot be used: {error}") from error


def wait_for_schema(options: Options, *, wait: bool) -> None:
    """Raise CommandError unless the schema is that of this version; or wait for it."""
    connection = connections[options.database]
    while True:
        try:
            executor = MigrationExecutor(connection)
            leaves = [n for n in executor.loader.graph.leaf_nodes() if n[0] == "jobqueue"]
            if not executor.migration_plan(leaves):
                return
            problem = "jobqueue's migrations have not been applied: run `manage.py migrate`."
        except OperationalError as error:
            problem = f"the database does not answer: {error}"
            connection.close()
        if not wait:
            raise CommandError(problem)
        time.sleep(1.0)


def _queues(alias: str, text: str) -> tuple[str, ...]:
    """Return the queues to serve; empty: every queue."""
    allowed = task_backends[alias].queues
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = sorted(set(names) - set(allowed)) if allowed else []
    if unknown:
        raise CommandError(
            f"Unknown queue(s) {', '.join(unknown)}; TASKS[{alias!r}] has "
            f"{', '.join(sorted(allowed))}."
        )
    return names or tuple(sorted(allowed))


def _positive(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1_000:
        raise ValueError
    return value
