"""``jobs pause`` and ``jobs resume``: stop claiming from a queue, and go on."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from jobqueue import control
from jobqueue.management.formats import queue_name
from jobqueue.management.jobs_commands.base import Shell, Subcommand
from jobqueue.management.jobs_commands.unheard import add_force, refuse_unheard


class Pause(Subcommand):
    """Stops claims from a queue."""

    name = "pause"
    changes = True
    help = "Pause a queue: nothing more is claimed from it; running jobs go on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queue", type=queue_name, help="name of a queue")
        parser.add_argument("--reason", default="", help="why, for whoever wonders")
        add_force(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        if not options["force"]:
            refuse_unheard(shell, options["queue"])
        shell.report(
            control.pause(options["queue"], shell.actor, options["reason"], backend=shell.backend)
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
