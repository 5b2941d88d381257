"""Which jobs a command is about: ids as given, a filter as words, or one made of options."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError

from jobqueue.filters import Filter, parse, term
from jobqueue.management.formats import queue_name

FILTERS = {
    "state": "state",
    "queue": "queue",
    "task": "task",
    "error_fingerprint": "fingerprint",
}
"""Options that choose jobs, and the key of the filter language that each stands for."""


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


def chosen_filter(options: Mapping[str, Any], states: Sequence[str]) -> str | None:
    """Return the filter that was given, None if ids were; raise CommandError if neither or both."""
    given = {key: options[name] for name, key in FILTERS.items() if options[name] is not None}
    if options["ids"] and given:
        raise CommandError("Give ids or a filter, not both. Nothing was changed.")
    if options["ids"]:
        return None
    if "state" not in given:
        raise CommandError(
            f"Give the ids of jobs, or say which with --state {' or '.join(sorted(states))} and, "
            "to narrow it, --queue, --task, --error-fingerprint. Nothing was changed."
        )
    return str(Filter(tuple(term(key, value) for key, value in given.items())))
