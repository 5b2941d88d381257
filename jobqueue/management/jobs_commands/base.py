"""What every subcommand of ``manage.py jobs`` has: a shell to write to, and who is at it."""

from __future__ import annotations

import getpass
import json
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.core.management.base import CommandError, OutputWrapper
from django.core.management.color import Style
from django.db import connections
from django.utils import timezone

from jobqueue.conf import Options, options_for
from jobqueue.control import Actor, Outcome
from jobqueue.filters.times import moment_of
from jobqueue.storage import Storage, storage_for

SURFACE = "shell"


@dataclass(frozen=True)
class Shell:
    """Where a subcommand runs: its output, its colors (none unless a terminal), its TASKS alias.

    called_from_command_line: False under `call_command`.
    """

    stdout: OutputWrapper
    stderr: OutputWrapper
    style: Style
    backend: str
    actor_name: str | None = None
    verbosity: int = 1
    called_from_command_line: bool = False

    @property
    def is_terminal(self) -> bool:
        return self.stdout.isatty()

    @property
    def options(self) -> Options:
        return options_for(self.backend)

    @property
    def database(self) -> str:
        return self.options.database

    @property
    def storage(self) -> Storage:
        return storage_for(connections[self.database], self.options)

    @property
    def actor(self) -> Actor:
        """Who does it: --actor, by default the user of the operating system."""
        return Actor(self.actor_name or _os_user(), SURFACE)

    def moment(self, text: str) -> datetime:
        """Return the time that `text` says, from now on the database's clock."""
        return moment_of(text, self.storage.clock(), timezone.get_current_timezone())

    def write(self, text: str = "") -> None:
        """Write a line to standard output."""
        self.stdout.write(text)

    def write_json(self, document: Any) -> None:
        """Write one JSON document: on one line unless a person reads it."""
        self.stdout.write(
            json.dumps(document, default=_as_json, indent=2 if self.is_terminal else None)
        )

    def progress(self, text: str) -> None:
        """Show how far a long command is, on one line of a terminal that is written over."""
        if self.stderr.isatty() and self.verbosity:
            self.stderr.write(f"\r\x1b[2K{text}", style_func=str, ending="")
            self.stderr.flush()

    def report(self, outcome: Outcome) -> None:
        """Say what an operation did. Raise CommandError if it changed nothing of what was meant."""
        if not outcome.changed and outcome.counts:
            raise CommandError(f"{_sentence(outcome)}. Nothing was changed.")
        self.write(self.style.SUCCESS(str(outcome)))


class Subcommand:
    """One subcommand: its name, its help, its arguments, whether it changes rows, what it does."""

    name: ClassVar[str]
    help: ClassVar[str]
    changes: ClassVar[bool] = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments that only this subcommand has."""

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        """Do it; raise CommandError, with what to do, if it cannot be done."""
        raise NotImplementedError


def add_json(parser: ArgumentParser) -> None:
    """Add the flag for output that programs read."""
    parser.add_argument("--json", action="store_true", help="print JSON, with stable names")


def _sentence(outcome: Outcome) -> str:
    listed = [f"{job_id}: {what}" for job_id, what in list(outcome.results.items())[:5]]
    return "; ".join(listed) if len(outcome.results) == len(listed) and listed else str(outcome)


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return list(value)
