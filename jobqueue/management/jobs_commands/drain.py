"""``jobs drain``: let workers end without stopping their jobs."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError

from jobqueue import control
from jobqueue.management.jobs_commands.base import Shell, Subcommand
from jobqueue.models import Worker

LISTED = 20
"""Workers named in an error; more would help nobody."""
MIN_ID_DIGITS = 6


class Drain(Subcommand):
    """Drains workers, named one by one or by their host."""

    name = "drain"
    changes = True
    help = (
        "Drain workers: each claims nothing more from its next beat on, ends the jobs in hand, and "
        "exits. No other is started in its place; a runworker whose processes are all drained "
        "stops."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "workers",
            nargs="*",
            metavar="WORKER",
            help="HOST:PID as `jobs status` shows it, or an identity or its first digits",
        )
        parser.add_argument("--host", metavar="NAME", help="all workers of this host")

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        living = list(
            Worker.objects.using(shell.database)
            .filter(kind="worker", dead=False)
            .only("id", "name", "host", "pid")
            .order_by("host", "pid")
        )
        chosen = [_named(text, living) for text in options["workers"]]
        if options["host"]:
            chosen += [worker for worker in living if worker.host == options["host"]]
        if not chosen:
            raise CommandError(f"Name a worker, or a --host that has some. {_listed(living)}")
        outcome = control.Outcome("told to drain")
        for worker in chosen:
            outcome += control.drain_worker(worker.id, shell.actor, backend=shell.backend)
        shell.report(outcome)


def _named(text: str, living: Sequence[Worker]) -> Worker:
    digits = text.replace("-", "").lower()
    found = [
        worker
        for worker in living
        if f"{worker.host}:{worker.pid}" == text
        or (len(digits) >= MIN_ID_DIGITS and worker.id.hex.startswith(digits))
    ]
    if len(found) != 1:
        what = "No living worker is" if not found else f"{len(found)} living workers are"
        raise CommandError(f"{what} called {text!r}. {_listed(living)} Nothing was changed.")
    return found[0]


def _listed(living: Sequence[Worker]) -> str:
    if not living:
        return "None is alive."
    names = [f"{worker.host}:{worker.pid} ({worker.id})" for worker in living[:LISTED]]
    more = f" and {len(living) - LISTED} more" if len(living) > LISTED else ""
    return f"Alive are {', '.join(names)}{more}."
