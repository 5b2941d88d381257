"""``jobs pause`` and ``jobs resume``: stop claiming from a queue, and go on."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from jobqueue import control
from jobqueue.engine.queues import has_live_jobs, known_queues
from jobqueue.management.formats import queue_name
from jobqueue.management.jobs_commands.base import Shell, Subcommand


class Pause(Subcommand):
    """Stops claims from a queue."""

    name = "pause"
    changes = True
    help = "Pause a queue: nothing more is claimed from it; running jobs go on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queue", type=queue_name, help="name of a queue")
        parser.add_argument("--reason", default="", help="why, for whoever wonders")
        parser.add_argument(
            "--force", action="store_true", help="also a queue that nothing has heard of yet"
        )

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        if not options["force"]:
            _refuse_unheard(shell, options["queue"])
        shell.report(
            control.pause(options["queue"], shell.actor, options["reason"], backend=shell.backend)
        )


def _refuse_unheard(shell: Shell, queue: str) -> None:
    """Raise CommandError for a name that is most likely misspelled: the real queue would run on."""
    known = known_queues(shell.backend)
    if queue in known or has_live_jobs(queue, shell.backend):
        return
    alike = difflib.get_close_matches(queue, known, n=1)
    hint = f" Did you mean {alike[0]}?" if alike else ""
    raise CommandError(
        f"Queue {queue!r} is not in QUEUES (known: {', '.join(known)}), and no job of it waits or "
        f"runs.{hint} --force pauses it all the same. Nothing was changed."
    )


class Resume(Subcommand):
    """Lets claims go on."""

    name = "resume"
    changes = True
    help = "Let workers claim from a paused queue again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queue", type=queue_name, help="name of a queue")

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        shell.report(control.resume(options["queue"], shell.actor, backend=shell.backend))
