"""``jobs discard``: give dead letters up for good."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from jobqueue import control
from jobqueue.management.jobs_commands.base import Shell, Subcommand


class Discard(Subcommand):
    """Leads dead jobs to cancelled."""

    name = "discard"
    changes = True
    help = "Give dead jobs up: they become cancelled, and are pruned as cancelled jobs are."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("ids", nargs="+", metavar="ID", help="ids of dead jobs")
        parser.add_argument("--reason", default="", help="why, for whoever looks at the job")

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        shell.report(
            control.discard(
                options["ids"], shell.actor, reason=options["reason"], backend=shell.backend
            )
        )
