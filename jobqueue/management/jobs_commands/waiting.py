"""``jobs reschedule``, ``run-now``, ``prioritize`` and ``move``: other plans for jobs that wait."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from jobqueue import control
from jobqueue.compat import TASK_MAX_PRIORITY, TASK_MIN_PRIORITY
from jobqueue.management.formats import moment, priority, queue_name
from jobqueue.management.jobs_commands.base import Shell, Subcommand

PRIORITY_HELP = f"{TASK_MIN_PRIORITY} to {TASK_MAX_PRIORITY}; higher is sooner"
AT_HELP = "2026-01-01T12:30, +90m (from now) or now"


class Reschedule(Subcommand):
    """Makes jobs due at another time."""

    name = "reschedule"
    changes = True
    help = "Make jobs that wait due at another time. A time that has passed means now."

    def add_arguments(self, parser: ArgumentParser) -> None:
        _add_ids(parser)
        parser.add_argument("--at", type=moment, required=True, metavar="TIME", help=AT_HELP)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        due = shell.moment(options["at"])
        shell.report(control.reschedule(options["ids"], due, shell.actor, backend=shell.backend))


class RunNow(Subcommand):
    """Makes jobs due now."""

    name = "run-now"
    changes = True
    help = (
        "Make jobs that wait due now. One that is ready keeps its place; one that is blocked stays "
        "blocked."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        _add_ids(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        shell.report(control.run_now(options["ids"], shell.actor, backend=shell.backend))


class Prioritize(Subcommand):
    """Gives jobs another priority."""

    name = "prioritize"
    changes = True
    help = "Give jobs that wait another priority. How long they have waited still counts."

    def add_arguments(self, parser: ArgumentParser) -> None:
        _add_ids(parser)
        parser.add_argument(
            "--priority", type=priority, required=True, metavar="N", help=PRIORITY_HELP
        )

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        shell.report(
            control.reprioritize(
                options["ids"], options["priority"], shell.actor, backend=shell.backend
            )
        )


class Move(Subcommand):
    """Puts jobs into another queue."""

    name = "move"
    changes = True
    help = "Put jobs that wait into another queue, one of QUEUES if the alias names any."

    def add_arguments(self, parser: ArgumentParser) -> None:
        _add_ids(parser)
        parser.add_argument(
            "--queue", type=queue_name, required=True, metavar="NAME", help="where they go"
        )

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        shell.report(
            control.move(options["ids"], options["queue"], shell.actor, backend=shell.backend)
        )


def _add_ids(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="ids of jobs")
