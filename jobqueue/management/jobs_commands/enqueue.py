"""``jobs enqueue`` and ``jobs run-again``: make jobs by hand."""

from __future__ import annotations

import argparse
import json
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from jobqueue import control
from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import UNLIMITED
from jobqueue.management.formats import moment, priority, queue_name
from jobqueue.management.jobs_commands.base import Shell, Subcommand, add_json
from jobqueue.management.jobs_commands.waiting import AT_HELP, PRIORITY_HELP


class Enqueue(Subcommand):
    """Makes one job of a task that is named."""

    name = "enqueue"
    changes = True
    help = (
        "Make a job of a task. An argument that is JSON is read as such, so that 42 is a number; "
        "every other one is text. Options that are not given are those of the task."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("task", metavar="TASK", help="its dotted path, such as shop.tasks.send_receipt")
        add("values", nargs="*", type=_value, metavar="ARG", help="arguments by position")
        add(
            "--kwarg",
            action="append",
            default=[],
            type=_named_value,
            metavar="NAME=VALUE",
            help="an argument by name; may be given more than once",
        )
        add("--queue", type=queue_name, metavar="NAME", help="instead of the task's own")
        add("--priority", type=priority, metavar="N", help=PRIORITY_HELP)
        add("--at", type=moment, metavar="TIME", help=f"not before: {AT_HELP}")
        add("--expires", type=moment, metavar="TIME", help="not started by then: cancelled")
        add("--tag", action="append", metavar="TAG", help="may be given more than once")
        add("--max-attempts", type=_attempts, metavar="N", help=f"or {UNLIMITED}")
        add("--unique-key", metavar="KEY", help="at most one job of this key waits")
        add_json(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        at, expires = options["at"], options["expires"]
        alias = shell.backend
        result = control.enqueue(
            options["task"],
            options["values"],
            dict(options["kwarg"]),
            shell.actor,
            queue=options["queue"],
            priority=options["priority"],
            run_after=None if at is None else shell.moment(at),
            expires=None if expires is None else shell.moment(expires),
            tags=options["tag"],
            max_attempts=options["max_attempts"],
            unique_key=options["unique_key"],
            # The default alias is nobody's choice: the task's own is meant then.
            backend=None if alias == DEFAULT_TASK_BACKEND_ALIAS else alias,
        )
        state = str(result.job_state)
        if options["json"]:
            document = {"id": result.id, "state": state, "made": not result.already_enqueued}
            shell.write_json(document)
        elif result.already_enqueued:
            shell.write(f"{result.id} had been enqueued already, and is {state}.")
        else:
            shell.write(shell.style.SUCCESS(f"{result.id} is {state}."))


class RunAgain(Subcommand):
    """Copies jobs that have ended."""

    name = "run-again"
    changes = True
    help = (
        "Make a new job of each that has ended, with the same task, arguments and tags. The old "
        "one stays as it is, and what it has done can happen twice; `jobs requeue` gives a dead "
        "one another chance instead."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("ids", nargs="+", metavar="ID", help="ids of jobs")
        add_json(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        outcome = control.run_again(options["ids"], shell.actor, backend=shell.backend)
        if options["json"]:
            copies = {str(old): str(new) for old, new in outcome.copies.items()}
            shell.write_json({"counts": outcome.counts, "copies": copies})
            return
        shell.report(outcome)
        for old, new in outcome.copies.items():
            shell.write(f"{old} → {new}")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _named_value(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as urgent=true.")
    return name, _value(value)


def _attempts(text: str) -> int | str:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else text
