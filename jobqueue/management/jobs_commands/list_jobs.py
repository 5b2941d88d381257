"""``jobs list``: jobs, the newest first."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from typing import Any

from jobqueue import filters
from jobqueue.compat import task_backends
from jobqueue.management.formats import (
    budget,
    clock_time,
    queue_name,
    state_name,
    whole,
)
from jobqueue.management.jobs_commands.base import Shell, Subcommand, add_json
from jobqueue.management.jobs_commands.selection import add_filter, filter_of
from jobqueue.management.jobs_commands.table import render
from jobqueue.models import Job
from jobqueue.redaction import redact_text
from jobqueue.states import State

DEFAULT_LIMIT = 20
MAX_LIMIT = 10_000
"""Rows of one list; more are read with a query of your own."""
COLUMNS = (
    "id",
    "task",
    "state",
    "queue",
    "priority",
    "attempts",
    "max_attempts",
    "failures",
    "run_at",
    "enqueued_at",
    "finished_at",
    "worker",
    "reason",
    "error_class",
    "error_message",
    "error_fingerprint",
)
"""What is read: never arguments, results and tracebacks, which are large and may be secret."""


class List(Subcommand):
    """Prints a page of jobs."""

    name = "list"
    help = (
        "List jobs, the newest first, without a filter those in every state. A filter such as "
        "`state:dead queue:mail error:ValueError` says which; one that names no state looks at "
        "live and dead jobs only, with state:any at all. `jobs show ID` tells all about one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_filter(parser)
        parser.add_argument(
            "--state",
            action="append",
            type=state_name,
            metavar="STATE",
            help=f"only jobs in this state ({', '.join(State)}); may be given more than once",
        )
        parser.add_argument("--queue", type=queue_name, metavar="NAME", help="only of this queue")
        parser.add_argument("--task", metavar="PATH", help="only of this task")
        parser.add_argument(
            "--limit",
            type=whole(1, MAX_LIMIT),
            default=DEFAULT_LIMIT,
            metavar="N",
            help=f"at most so many (default: {DEFAULT_LIMIT})",
        )
        add_json(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        limit = options["limit"]
        rows = list(_jobs(shell, options).values(*COLUMNS)[: limit + 1])
        for row in rows:
            row["error_message"] = redact_text(row["error_message"], task=row["task"], part="error")
        if options["json"]:
            shell.write_json({"jobs": rows[:limit], "more": len(rows) > limit})
            return
        if not rows:
            shell.write(f"No job matches.{_where(options)}{_misspelled(shell, options)}")
            return
        for line in _table(shell, rows[:limit]):
            shell.write(line)
        if len(rows) > limit:
            shell.write(f"… and older ones; --limit shows more (up to {MAX_LIMIT:,}).")


def _jobs(shell: Shell, options: Mapping[str, Any]) -> Any:
    chosen = filter_of(options)
    return filters.matching(
        Job.objects.using(shell.database).order_by("-id"),
        chosen,
        shell.storage.clock(),
        bindings=filters.bindings_of(chosen),
        default=filters.DEFAULT_STATES if options["filter"] else frozenset(State),
    )


def _where(options: Mapping[str, Any]) -> str:
    if not options["filter"] or any(filter_of(options).of("state")):
        return ""
    return " Only live and dead jobs were looked at; add state:any to look at all."


def _misspelled(shell: Shell, options: Mapping[str, Any]) -> str:
    """Say which queues there are, if the filter names one that is not in QUEUES."""
    known = task_backends[shell.backend].queues
    named = [value for term in filter_of(options).of("queue") for value in term.values]
    unknown = [value.text for value in named if not value.is_pattern and value.text not in known]
    if not known or not unknown:
        return ""
    return (
        f" Queue {unknown[0]} is not in QUEUES of TASKS[{shell.backend!r}], which has "
        f"{', '.join(sorted(known))}."
    )


def _table(shell: Shell, rows: list[dict[str, Any]]) -> list[str]:
    width = shutil.get_terminal_size().columns if shell.is_terminal else None
    return render(
        ["id", "task", "state", "queue", "failures", "run at", "last error"],
        [
            [
                str(row["id"]),
                row["task"],
                row["state"],
                row["queue"],
                budget(row["failures"], row["max_attempts"]),
                clock_time(row["run_at"]),
                last_error(row),
            ]
            for row in rows
        ],
        right=[4],
        paint=lambda n, text: state_color(shell, text) if n == 2 else None,
        header_paint=shell.style.MIGRATE_LABEL,
        width=width,
    )


def state_color(shell: Shell, state: str) -> Callable[[str], str] | None:
    """Return the color of a state: what went wrong stands out."""
    style = shell.style
    colors = {
        State.DEAD: style.ERROR,
        State.RETRYING: style.WARNING,
        State.BLOCKED: style.WARNING,
        State.SUCCEEDED: style.SUCCESS,
    }
    return colors.get(State(state)) if state in set(State) else None


def last_error(row: Mapping[str, Any]) -> str:
    """Return why a job is where it is, on one line: its reason, or its last error."""
    name = row["error_class"].rpartition(".")[2]
    message = row["error_message"].split("\n", 1)[0]
    error = f"{name}: {message}" if name and message else name or message
    return "; ".join(part for part in (row["reason"], error) if part)
