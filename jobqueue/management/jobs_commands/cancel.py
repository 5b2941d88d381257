"""``jobs cancel``: end jobs that should not run (any more)."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from jobqueue import control
from jobqueue.management.jobs_commands.base import Shell, Subcommand


class Cancel(Subcommand):
    """Ends jobs as cancelled."""

    name = "cancel"
    changes = True
    help = (
        "Cancel jobs: those that wait at once; running ones are asked to stop, and do not run "
        "again. With --force their runs are ended: the worker is refused from then on, so what an "
        "atomic job wrote rolls back, and stops the code as for a time-out."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("ids", nargs="+", metavar="ID", help="ids of jobs")
        parser.add_argument("--force", action="store_true", help="end the runs of running jobs")
        parser.add_argument("--reason", default="", help="why, for whoever looks at the job")

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        shell.report(
            control.cancel(
                options["ids"],
                shell.actor,
                options["force"],
                reason=options["reason"],
                backend=shell.backend,
            )
        )
