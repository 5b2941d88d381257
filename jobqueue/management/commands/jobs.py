"""``manage.py jobs``: look at jobs and act on them from a shell.

The parts are in `jobqueue.management.jobs_commands`, one module a subcommand. Everything that
changes something goes through `jobqueue.control` and leaves an Action row with the actor.

Exit codes: 0 done or healthy; 1 refused, unhealthy or a violation found, with the reason on
standard error; 2 arguments that cannot be parsed; 130 Ctrl-C; 141 nobody reads the output on.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from typing import Any, NoReturn

from django.core.management.base import CommandError, CommandParser
from django.core.management.color import no_style
from django.db import DatabaseError, OperationalError, ProgrammingError

from jobqueue.conf import jobqueue_aliases
from jobqueue.exceptions import InvalidArgument, InvalidFilter, InvalidOptions, JobQueueError
from jobqueue.management.endings import QuietCommand
from jobqueue.management.jobs_commands import SUBCOMMANDS, Shell
from jobqueue.management.jobs_commands.table import cut, printable
from jobqueue.management.jobs_commands.work import Work

_PARTS = {part.name: part for part in SUBCOMMANDS}


class _Parser(CommandParser):
    """Refuses what a subcommand does not know with that subcommand's own usage."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, as the main parser asks for; nothing may be left over."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest


class Command(QuietCommand):
    """Parses the subcommand and turns every expected error into one line that says what to do."""

    help = "Look at jobs and act on them. `jobs COMMAND --help` explains each command."
    requires_system_checks = ()  # a probe must answer quickly, and whatever else is wrong

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser; options are not abbreviated, so that a new one breaks no script."""
        return super().create_parser(prog_name, subcommand, allow_abbrev=False, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        _add_common(parser, backend="default", actor=None)
        parts = parser.add_subparsers(
            dest="part", metavar="COMMAND", title="commands", parser_class=_Parser
        )
        for part in SUBCOMMANDS:
            own = parts.add_parser(
                part.name, help=_first_sentence(part.help), description=part.help
            )
            if not isinstance(part, Work):
                _add_common(own)
                _add_django(own)
            part.add_arguments(own)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["part"] is None:
            self._refuse_nothing()
        part = _PARTS[options["part"]]
        shell = self._shell(options)
        try:
            if not isinstance(part, Work):
                _require_backend(shell.backend)
            part.run(shell, options)
        except InvalidOptions as error:
            raise CommandError(f"{error} See manage.py check.") from error
        except InvalidFilter as error:
            lines = [error.problem, *error.pointer.split("\n")]
            raise CommandError("\n".join(printable(line) for line in lines)) from error
        except InvalidArgument as error:
            kept = " Nothing was changed." if part.changes else ""
            raise CommandError(f"{error}{kept}") from error
        except JobQueueError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(_database_sentence(error)) from error

    def _refuse_nothing(self) -> NoReturn:
        """List the commands for whoever names none; a script must not take that for success."""
        if not getattr(self, "_called_from_command_line", False):
            raise CommandError("Name a command: " + ", ".join(_PARTS), returncode=2)
        self.stderr.write(_overview(shutil.get_terminal_size().columns), style_func=str)
        sys.exit(2)

    def _shell(self, options: dict[str, Any]) -> Shell:
        plain = not self.stdout.isatty() or bool(os.environ.get("NO_COLOR"))
        if plain and not options.get("force_color"):
            self.style = no_style()
            self.stderr.style_func = None
        return Shell(
            stdout=self.stdout,
            stderr=self.stderr,
            style=self.style,
            backend=options["backend"],
            actor_name=options["actor"],
            verbosity=options["verbosity"],
            called_from_command_line=getattr(self, "_called_from_command_line", False),
        )


def _overview(columns: int) -> str:
    """Return a line for each command, none longer than `columns`."""
    wide = max(len(name) for name in _PARTS) + 2
    lines = [
        f"  {name:<{wide}}{_in_brief(part.help, columns - wide - 2)}"
        for name, part in _PARTS.items()
    ]
    return "\n".join(["Commands; `jobs COMMAND --help` explains each:", "", *lines])


def _in_brief(text: str, columns: int) -> str:
    """Return as much of the first sentence as can stand alone and fits."""
    brief = re.split("[:;]", _first_sentence(text))[0]
    return cut(brief if len(brief) <= columns else brief.split(", ")[0], columns)


def _add_common(
    parser: argparse.ArgumentParser,
    *,
    backend: str = argparse.SUPPRESS,
    actor: str | None = argparse.SUPPRESS,
) -> None:
    """Add what stands before or after the subcommand's name; the later one wins."""
    parser.add_argument(
        "--backend", default=backend, metavar="ALIAS", help="alias in TASKS (default: default)"
    )
    parser.add_argument(
        "--actor",
        default=actor,
        metavar="NAME",
        help="who does it, for the record (default: the user of the operating system)",
    )


def _add_django(parser: argparse.ArgumentParser) -> None:
    """Let Django's own options stand after the subcommand's name, too."""
    for name in ("--settings", "--pythonpath"):
        parser.add_argument(name, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    for name in ("--traceback", "--no-color", "--force-color"):
        parser.add_argument(
            name, action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
    parser.add_argument(
        "-v",
        "--verbosity",
        type=int,
        choices=range(4),
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )


def _require_backend(alias: str) -> None:
    known = jobqueue_aliases()
    if alias not in known:
        raise CommandError(
            f"TASKS has no alias {alias!r} that uses jobqueue's backend; it has "
            f"{', '.join(known) or 'none'}. Name one with --backend."
        )


def _database_sentence(error: DatabaseError) -> str:
    first = str(error).strip().split("\n", 1)[0]
    if isinstance(error, ProgrammingError) or "no such table" in first:
        return f"{first} Have the migrations been applied? Run manage.py migrate."
    if isinstance(error, OperationalError):
        return f"The database does not answer as it should: {first}"
    return f"The database refused: {first}"


def _first_sentence(text: str) -> str:
    """Return the first sentence for the list of commands, which is in lower case."""
    sentence = text.split(". ", 1)[0].rstrip(".")
    return sentence[0].lower() + sentence[1:]
