"""``jobs bulk``: do one thing to all jobs that a filter matches, and watch over it."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from jobqueue import control
from jobqueue.engine.bulk_plan import BULK_VERBS
from jobqueue.management.endings import INTERRUPTED
from jobqueue.management.formats import duration, moment, priority, queue_name, whole
from jobqueue.management.jobs_commands.base import Shell, Subcommand, add_json
from jobqueue.management.jobs_commands.bulk_pages import as_document, bar, cautions, page, table
from jobqueue.management.jobs_commands.waiting import AT_HELP, PRIORITY_HELP
from jobqueue.models import BulkOperation, BulkState

ACTIONS = ("start", "list", "show", "stop", "resume")
VERBS = {verb.replace("_", "-"): verb for verb in BULK_VERBS}
"""The verbs as they are typed."""
DEFAULT_LIMIT = 20
LOOK_SECONDS = 0.2
"""Pause while others carry the operation out, or it waits for rows that are locked."""
BREATH_SECONDS = 0.05
"""Pause between two steps on SQLite, in which others get the write lock."""


class Bulk(Subcommand):
    """Starts, lists, shows, stops or resumes bulk operations."""

    name = "bulk"
    changes = True
    help = (
        "Do one thing to all jobs that a filter matches: start VERB TERM …, with VERB one of "
        f"{', '.join(VERBS)}; or list, show, stop or resume such operations by number. What start "
        "begins is carried out here, and by any runscheduler or maintaining runworker; each job "
        "has its turn once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("action", nargs="?", choices=ACTIONS, default="list", help="default: list")
        add("words", nargs="*", metavar="WORD", help="VERB and TERMs of a filter, or a number")
        add("--ids", metavar="FILE", help="ids of jobs instead of a filter, one a line; - is stdin")
        add("--dry-run", action="store_true", help="start: only say what it would be about")
        add("--detach", action="store_true", help="start: leave it to runworker and runscheduler")
        add("--spread", type=duration, metavar="TIME", help="requeue, reschedule: due evenly over")
        add("--at", type=moment, metavar="TIME", help=f"requeue, reschedule: due at {AT_HELP}")
        add("--priority", type=priority, metavar="N", help=f"reprioritize: {PRIORITY_HELP}")
        add("--queue", type=queue_name, metavar="NAME", help="move: where they go")
        add("--reason", default="", help="cancel, discard: why, for whoever looks at a job")
        add(
            "--limit",
            type=whole(1, 1_000),
            default=DEFAULT_LIMIT,
            metavar="N",
            help=f"list: at most so many (default: {DEFAULT_LIMIT})",
        )
        add_json(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        {"start": _start, "list": _list, "show": _show, "stop": _stop, "resume": _resume}[
            options["action"]
        ](shell, options)


# --- start ----------------------------------------------------------------------------------------


def _start(shell: Shell, options: Mapping[str, Any]) -> None:
    verb, chosen = _asked(options)
    if options["dry_run"]:
        _preview(shell, options, control.bulk_preview(verb, **chosen, backend=shell.backend))
        return
    at = options["at"]
    operation = control.bulk_start(
        verb,
        shell.actor,
        **chosen,
        run_at=None if at is None else shell.moment(at),
        spread=options["spread"],
        priority=options["priority"],
        queue=options["queue"],
        reason=options["reason"],
        backend=shell.backend,
    )
    if not options["detach"]:
        operation = carry_out(shell, operation)
    if options["json"]:
        shell.write_json(as_document(operation))
    elif options["detach"]:
        shell.write(f"Bulk operation {operation.pk} has begun: {bar(operation)}.")
    else:
        report(shell, operation)


def _asked(options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the verb, and the filter or ids that say which jobs."""
    typed, *terms = options["words"] or [""]
    if typed not in VERBS:
        raise CommandError(
            f"Say what to do: jobs bulk start VERB TERM …, with VERB one of {', '.join(VERBS)}."
        )
    if options["ids"] is not None and terms:
        raise CommandError("Give --ids or a filter, not both. Nothing was changed.")
    if options["ids"] is not None:
        return VERBS[typed], {"ids": _read_ids(options["ids"])}
    return VERBS[typed], {"filter": " ".join(terms)}


def _read_ids(name: str) -> list[str]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}. Nothing was changed.") from None
    return text.split()


def _preview(shell: Shell, options: Mapping[str, Any], found: control.Preview) -> None:
    if options["json"]:
        shell.write_json(asdict(found))
        return
    shell.write(f"{found} would have a turn.")
    for name, groups in (("state", found.by_state), ("queue", found.by_queue),
                         ("task", found.by_task)):  # fmt: skip
        for value, count in groups.items():
            shell.write(f"  {name:<6}{value}  {count:,}")


def carry_out(shell: Shell, operation: BulkOperation) -> BulkOperation:
    """Carry `operation` out step by step, beside whoever else does; return it as it is then."""
    try:
        while operation.is_running:
            shell.progress(bar(operation))
            taken = control.bulk_step(shell.backend, only=operation.pk)
            operation = taken or control.bulk_operation(operation.pk, backend=shell.backend)
            if taken is None:
                time.sleep(LOOK_SECONDS)
            elif shell.storage.one_host:
                time.sleep(BREATH_SECONDS)
    except KeyboardInterrupt:
        raise CommandError(
            f"Bulk operation {operation.pk} goes on wherever a runworker or runscheduler runs; "
            f"jobs bulk stop {operation.pk} stops it.",
            returncode=INTERRUPTED,
        ) from None
    finally:
        shell.progress("")
    return operation


def report(shell: Shell, operation: BulkOperation) -> None:
    """Say what an operation has done. Raise CommandError if it did not come to its end."""
    counts = dict(operation.counts)
    done = str(control.Outcome(DONE[operation.verb], given_counts=counts))
    if operation.state == "finished":
        shell.write(shell.style.SUCCESS(done))
        return
    why = f": {operation.error}" if operation.error else ""
    raise CommandError(
        f"Bulk operation {operation.pk} has {operation.state}{why} ({done} until then); "
        f"jobs bulk resume {operation.pk} lets it go on."
    )


DONE = {
    "requeue": "requeued",
    "cancel": "cancelled",
    "discard": "discarded",
    "reschedule": "rescheduled",
    "run_now": "made due now",
    "reprioritize": "reprioritized",
    "move": "moved",
}


# --- looking, stopping ----------------------------------------------------------------------------


def _list(shell: Shell, options: Mapping[str, Any]) -> None:
    found = list(control.bulk_operations(backend=shell.backend)[: options["limit"]])
    if options["json"]:
        shell.write_json({"operations": [as_document(operation) for operation in found]})
    elif not found:
        shell.write("There has been no bulk operation.")
    else:
        for line in table(shell, found):
            shell.write(line)


def _show(shell: Shell, options: Mapping[str, Any]) -> None:
    operation = control.bulk_operation(_number(options), backend=shell.backend)
    if options["json"]:
        shell.write_json(as_document(operation))
        return
    for line in page(shell, operation):
        shell.write(line)


def _stop(shell: Shell, options: Mapping[str, Any]) -> None:
    number = _number(options)
    control.bulk_stop(number, shell.actor, backend=shell.backend)
    _say(shell, number, "stopped")


def _resume(shell: Shell, options: Mapping[str, Any]) -> None:
    number = _number(options)
    _warn(shell, control.bulk_operation(number, backend=shell.backend))
    control.bulk_resume(number, shell.actor, backend=shell.backend)
    _say(shell, number, "resumed")


def _warn(shell: Shell, operation: BulkOperation) -> None:
    """Say what its jobs would run into, as the admin's page does; a script is not kept waiting."""
    if operation.state not in (BulkState.STOPPED, BulkState.FAILED):
        return
    if warnings := list(cautions(shell, operation)):
        stop = f"To stop it again: manage.py jobs bulk stop {operation.pk}."
        for line in (*warnings, stop):
            shell.stderr.write(line, style_func=shell.style.WARNING)


def _say(shell: Shell, number: int, done: str) -> None:
    operation = control.bulk_operation(number, backend=shell.backend)
    shell.write(shell.style.SUCCESS(f"Bulk operation {number} {done}: {bar(operation)}."))


def _number(options: Mapping[str, Any]) -> int:
    words: Sequence[str] = options["words"]
    if len(words) != 1 or not words[0].isdecimal() or len(words[0]) > 18:
        raise CommandError(
            f"Give the number of an operation: jobs bulk {options['action']} NUMBER. "
            "jobs bulk list has them."
        )
    return int(words[0])
