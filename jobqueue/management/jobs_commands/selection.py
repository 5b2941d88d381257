"""Which jobs an operation is about: ids as given, or a filter walked once, upward by id.

A walk takes the jobs that were in the state before it began: one that dies while it goes on is
not taken, and none is taken twice.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.db.models import QuerySet

from jobqueue.engine.operations import MAX_ROWS
from jobqueue.filters import Filter, parse, term
from jobqueue.management.jobs_commands.base import Shell
from jobqueue.management.jobs_commands.formats import queue_name
from jobqueue.models import Job

FILTERS = ("state", "queue", "task", "error_fingerprint")


def add_filter(parser: ArgumentParser) -> None:
    """Add a filter, given as words."""
    parser.add_argument(
        "filter",
        nargs="*",
        metavar="TERM",
        help="terms of a filter, such as state:dead queue:mail; before one that begins with a "
        "minus, write --",
    )


def filter_of(options: Mapping[str, Any]) -> Filter:
    """Return the filter that words and options make together."""
    named = ("state", "queue", "task")
    given = {name: options[name] for name in named if options.get(name)}
    terms = [term(name, *([v] if isinstance(v, str) else v)) for name, v in given.items()]
    return Filter((*parse(" ".join(options["filter"])).terms, *terms))


def add_filters(parser: ArgumentParser, states: Sequence[str]) -> None:
    """Add what chooses jobs without naming them; one of `states` must be said."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="ids of jobs; or choose them by:")
    parser.add_argument("--state", choices=sorted(states), help="all jobs in this state")
    parser.add_argument("--queue", type=queue_name, metavar="NAME", help="… of this queue")
    parser.add_argument("--task", metavar="PATH", help="… of this task")
    parser.add_argument(
        "--error-fingerprint", metavar="HEX", help="… with errors like this one (see jobs show)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say how many they are")


def chosen_filter(options: Mapping[str, Any], states: Sequence[str]) -> dict[str, str] | None:
    """Return the filter that was given, None if ids were; raise CommandError if neither or both."""
    given = {name: options[name] for name in FILTERS if options[name] is not None}
    if options["ids"] and given:
        raise CommandError("Give ids or a filter, not both. Nothing was changed.")
    if options["ids"]:
        return None
    if "state" not in given:
        raise CommandError(
            f"Give the ids of jobs, or say which with --state {' or '.join(sorted(states))} and, "
            "to narrow it, --queue, --task, --error-fingerprint. Nothing was changed."
        )
    return given


def matching(shell: Shell, chosen: Mapping[str, str]) -> QuerySet[Job]:
    """Return the jobs that match and had ended before now, on the database's clock."""
    return Job.objects.using(shell.database).filter(
        **chosen, finished_at__lte=shell.storage.clock()
    )


def walk(jobs: QuerySet[Job]) -> Iterator[list[UUID]]:
    """Yield the ids of `jobs`, ascending, in portions of one transaction each."""
    last = None
    while True:
        rest = jobs if last is None else jobs.filter(id__gt=last)
        ids = list(rest.order_by("id").values_list("id", flat=True)[:MAX_ROWS])
        if ids:
            yield ids
        if len(ids) < MAX_ROWS:
            return
        last = ids[-1]
