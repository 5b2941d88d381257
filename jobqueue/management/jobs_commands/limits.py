"""``jobs limits``: what the limits are and how full, and other numbers for one of them."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from jobqueue import control
from jobqueue.control import LimitStatus, Outcome
from jobqueue.exceptions import InvalidArgument
from jobqueue.limits import queue_key
from jobqueue.management.formats import queue_name
from jobqueue.management.jobs_commands.base import Shell, Subcommand, add_json
from jobqueue.management.jobs_commands.table import render
from jobqueue.management.jobs_commands.unheard import add_force, refuse_unheard

NUMBERS = ("running", "rate", "per")


class Limits(Subcommand):
    """Lists limits, or changes one."""

    name = "limits"
    changes = True
    help = (
        "List the limits of keys and queues and how full they are, or change one. New numbers act "
        "on jobs that wait already; those of the code hold again after --reset."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("key", nargs="?", help="name of a limit, or one key of it such as customer:42")
        add("--queue", type=queue_name, help="the limit of a whole queue, instead of a key")
        add("--running", type=int, help="at most so many jobs of a key at once; 0 stops it")
        add("--rate", type=int, help="at most so many starts in --per seconds")
        add("--per", type=float, help="seconds")
        add("--lift", action="store_true", help="let any number start")
        add("--reset", action="store_true", help="let the numbers of the code hold again")
        add("--reason", default="", help="why, for whoever wonders")
        add_force(parser)
        add_json(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        key = _key(options)
        given = {name: options[name] for name in NUMBERS if options[name] is not None}
        asked = [bool(given), options["lift"], options["reset"]]
        if key is None and not any(asked):
            _show(shell, control.limits(shell.backend), as_json=options["json"])
            return
        if key is None or sum(asked) != 1:
            raise CommandError(
                "To change a limit give its key (or --queue), and numbers, --lift or --reset."
            )
        if options["queue"] is not None and not (options["force"] or options["reset"]):
            refuse_unheard(shell, options["queue"])
        try:
            shell.report(_changed(shell, key, given, options))
        except InvalidArgument as error:
            raise CommandError(str(error)) from error


def _key(options: Mapping[str, Any]) -> str | None:
    if options["key"] is not None and options["queue"] is not None:
        raise CommandError("Give a key or --queue, not both.")
    queue = options["queue"]
    return options["key"] if queue is None else queue_key(queue)


def _changed(
    shell: Shell, key: str, given: Mapping[str, Any], options: Mapping[str, Any]
) -> Outcome:
    if options["reset"]:
        return control.reset_limit(key, shell.actor, backend=shell.backend)
    rest = {"reason": options["reason"], "backend": shell.backend}
    if options["lift"]:
        return control.lift_limit(key, shell.actor, **rest)
    return control.set_limit(key, shell.actor, **given, **rest)


def _show(shell: Shell, limits: list[LimitStatus], *, as_json: bool) -> None:
    if as_json:
        shell.write_json([asdict(limit) for limit in limits])
        return
    if not limits:
        shell.write("No task and no queue has a limit.")
        return
    lines = render(
        ["limit", "running", "at most", "rate", "blocked", "set by"],
        [
            [
                limit.key,
                str(limit.running_now),
                "any" if limit.running is None else str(limit.running),
                "" if limit.rate is None else f"{limit.rate} in {limit.per:g} s",
                str(limit.blocked_now),
                f"{limit.set_by} {limit.reason}".strip() or "code",
            ]
            for limit in limits
        ],
        right=[1, 2, 4],
        header_paint=shell.style.MIGRATE_LABEL,
    )
    for line in lines:
        shell.write(line)
