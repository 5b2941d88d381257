"""``manage.py runworker``: run jobs.

Channels has a command of this name, too: given channel names or ``--layer`` ours hands over to
it. ``manage.py jobs work`` is the same as ours under a name that cannot collide.
"""

from __future__ import annotations

import logging
import re
import socket
import sys
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections

from jobqueue.compat import task_backends
from jobqueue.conf import Options
from jobqueue.engine.counts import numbered
from jobqueue.management.base import ServiceCommand, discover_tasks
from jobqueue.management.formats import whole
from jobqueue.runtime.supervisor import Supervisor
from jobqueue.runtime.terminal import share_terminal, shows_status
from jobqueue.runtime.worker_plan import WorkerPlan
from jobqueue.storage.connections import is_direct

logger = logging.getLogger("jobqueue")

SESSIONS_PER_PROCESS = 7
"""Beside one a thread: the fetch loop's, the beat's, the listener's and, opened when they are
needed, the side connection's, the one for progress and log lines, that of receivers of signals and
the one that waits for a unique job. Each coroutine that uses the database has one more."""
SESSIONS_PER_SUPERVISOR = 6
"""The loops for recovery, promotion, suspects and reaping, the one in which promotion compares
schedules and carries out bulk operations, and that of receivers of signals."""
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


class Command(ServiceCommand):
    """Run worker processes until told to stop."""

    help = (
        "Run jobs. First TERM or INT: claim nothing more and let running jobs end; second: stop "
        "now, they run again elsewhere. Exit codes: 0 stopped cleanly, 1 jobs were cut off, "
        "78 settings or a module with tasks cannot be loaded."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        add = parser.add_argument
        add("--queues", default="", help="comma separated; default: the alias' QUEUES")
        add(
            "--queue-order",
            choices=("rank", "strict"),
            default="rank",
            help="rank (default): the most urgent of all queues goes first, which starves none; "
            "strict: nothing of a queue while an earlier one in --queues has a job",
        )
        add("--processes", type=whole(1, 1_000), default=1, help="worker processes (default: 1)")
        add("--threads", type=whole(1, 1_000), default=4, help="threads a process (default: 4)")
        add("--name", default="", help="a label for logs and the admin; default: the host's name")
        add(
            "--no-maintenance",
            action="store_true",
            help="leave schedules, sweeps, reaping and pruning to runscheduler and runreaper",
        )
        add("--until-empty", action="store_true", help="exit when nothing is ready or running")
        add(
            "--max-jobs",
            type=whole(1, 10**11),
            metavar="N",
            help="replace a process after so many jobs, once those in hand have ended",
        )
        add(
            "--max-memory",
            type=memory_size,
            metavar="SIZE",
            help="replace a process that holds more memory (such as 512M or 1.5G), likewise",
        )
        add(
            "--reload",
            action="store_true",
            help="for development: replace processes when a Python file of theirs changes",
        )
        add("--health-file", type=Path, help="a file touched every second while all is well")
        add("--layer", default=None, help="of Channels: hands over to its runworker")
        add("channels", nargs="*", help="of Channels: hands over to its runworker")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["channels"] or options["layer"]:
            _hand_over(options)
            return
        share_terminal(options["log_format"])
        super().handle(*args, **options)

    def start(self, engine_options: Options, options: dict[str, Any]) -> None:
        discover_tasks(engine_options)
        plan = _plan(options)
        if shows_status(options["log_format"]):
            slots = numbered(plan.processes * plan.threads, "slot")
            logger.info("%s on %s; Ctrl-C stops.", slots, ", ".join(plan.queues) or "every queue")
        logger.debug(
            "Up to %d database connections, one of them for each thread, and one more for each "
            "coroutine that uses the database.",
            most_sessions(plan),
        )
        direct = is_direct(engine_options.database)
        connections.close_all()
        sys.exit(Supervisor(plan, engine_options, direct).run())


def most_sessions(plan: WorkerPlan) -> int:
    """Return how many database sessions a `runworker` may have, without those of coroutines."""
    processes = plan.processes * (plan.threads + SESSIONS_PER_PROCESS)
    alone = 1 + SESSIONS_PER_PROCESS
    return processes + alone + SESSIONS_PER_SUPERVISOR


def _plan(options: dict[str, Any]) -> WorkerPlan:
    return WorkerPlan(
        backend=options["backend"],
        queues=queues_to_serve(options["backend"], options["queues"]),
        processes=options["processes"],
        threads=options["threads"],
        maintenance=not options["no_maintenance"],
        until_empty=options["until_empty"],
        max_jobs=options["max_jobs"],
        max_memory_bytes=options["max_memory"],
        reload=options["reload"],
        health_file=options["health_file"],
        name=options["name"] or socket.gethostname(),
        log_format=options["log_format"],
        log_level=options["log_level"],
        strict_order=_is_strict(options),
    )


def _is_strict(options: dict[str, Any]) -> bool:
    if options["queue_order"] == "rank":
        return False
    if not options["queues"]:
        raise CommandError("--queue-order strict needs --queues, in the order to serve them.")
    return True


def queues_to_serve(alias: str, text: str) -> tuple[str, ...]:
    """Return the queues that --queues names, by default those of QUEUES; empty: every queue."""
    allowed = task_backends[alias].queues
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = sorted(set(names) - set(allowed)) if allowed else []
    if unknown:
        what = "Queue {} is" if len(unknown) == 1 else "Queues {} are"
        raise CommandError(
            f"{what.format(', '.join(unknown))} not in QUEUES of TASKS[{alias!r}], which has "
            f"{', '.join(sorted(allowed))}. Name some of these with --queues, or all by leaving it "
            "out; a new queue has to be added to QUEUES."
        )
    return names or tuple(sorted(allowed))


def _hand_over(options: dict[str, Any]) -> None:
    """Run Channels' command of the same name with what was given to ours."""
    try:
        from channels.management.commands.runworker import Command as ChannelsCommand
    except ImportError as error:
        raise CommandError(
            "Channel names and --layer belong to Channels, which is not installed; jobqueue's "
            "runworker takes queues by --queues."
        ) from error
    layer = {} if options["layer"] is None else {"layer": options["layer"]}
    call_command(ChannelsCommand(), *options["channels"], **layer)


def memory_size(text: str) -> int:
    """Return the bytes of "300K", "512M" or "1.5G" (an argparse type). A unit must be given."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([KMG])(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if not size:
        raise ArgumentTypeError(f"{text!r} is not a size of memory; write 512M or 1.5G.")
    return size
