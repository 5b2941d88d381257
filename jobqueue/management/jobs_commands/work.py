"""``jobs work``: run a worker under a name that no other app can take.

Channels has a ``runworker`` too; whichever app comes first in INSTALLED_APPS has the name.
"""

from __future__ import annotations

import sys
from argparse import REMAINDER, ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management import call_command

from jobqueue.management.jobs_commands.base import Shell, Subcommand


class Work(Subcommand):
    """Passes all its arguments on to runworker."""

    name = "work"
    help = "Run jobs: the same as jobqueue's runworker, whose options it takes (work --help)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.prefix_chars = "\x00"  # nothing is an option here: all of it is passed on
        parser.add_argument("arguments", nargs=REMAINDER, help="options of runworker")

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        from jobqueue.management.commands.runworker import Command

        arguments = list(options["arguments"])
        if shell.called_from_command_line:
            Command().run_from_argv([sys.argv[0], "runworker", *arguments])
        else:
            call_command(Command(), *arguments)
