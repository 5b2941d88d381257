"""``jobs prune``: delete jobs that ended long ago."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from jobqueue import control
from jobqueue.engine.counts import numbered
from jobqueue.management.formats import duration
from jobqueue.management.jobs_commands.base import Shell, Subcommand
from jobqueue.states import FINISHED


class Prune(Subcommand):
    """Deletes in small batches, with progress."""

    name = "prune"
    changes = True
    help = (
        "Delete jobs that ended long ago, with their attempts, steps and tags, in small batches. "
        "Without options as RETENTION says, which workers also do by themselves."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than",
            type=duration,
            metavar="TIME",
            help="ended longer ago than this, at least a day (36h, 7d, 4w)",
        )
        parser.add_argument(
            "--state",
            action="append",
            choices=sorted(FINISHED),
            help="only jobs in this state; may be given more than once",
        )
        parser.add_argument("--dry-run", action="store_true", help="only count them")

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        outcome = control.prune(
            shell.actor,
            older_than=options["older_than"],
            states=options["state"],
            dry_run=options["dry_run"],
            progress=lambda count: shell.progress(f"{numbered(count, 'job')} pruned …"),
            backend=shell.backend,
        )
        shell.progress("")
        shell.write(shell.style.SUCCESS(str(outcome)))
