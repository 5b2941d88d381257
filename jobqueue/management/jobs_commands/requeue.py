"""``jobs requeue``: give dead or cancelled jobs another chance."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from jobqueue import control
from jobqueue.management.jobs_commands.base import Shell, Subcommand
from jobqueue.management.jobs_commands.bulk import carry_out, report
from jobqueue.management.jobs_commands.selection import add_filters, chosen_filter
from jobqueue.states import State

STATES = (State.DEAD.value, State.CANCELLED.value)


class Requeue(Subcommand):
    """Takes ids or a filter."""

    name = "requeue"
    changes = True
    help = (
        "Make dead or cancelled jobs ready again, with a new budget of attempts; their history is "
        "kept. Name them, or choose all that match a filter."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_filters(parser, STATES)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        chosen = chosen_filter(options, STATES)
        if options["dry_run"]:
            given = {"ids": options["ids"]} if chosen is None else {"filter": chosen}
            found = control.bulk_preview("requeue", **given, backend=shell.backend)
            shell.write(f"{found} would be requeued.")
        elif chosen is None:
            shell.report(control.requeue(options["ids"], shell.actor, backend=shell.backend))
        else:
            operation = control.bulk_start(
                "requeue", shell.actor, filter=chosen, backend=shell.backend
            )
            report(shell, carry_out(shell, operation))
