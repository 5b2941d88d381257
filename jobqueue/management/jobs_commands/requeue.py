"""``jobs requeue``: give dead or cancelled jobs another chance."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping
from typing import Any

from jobqueue import control
from jobqueue.engine.operations import parse_ids
from jobqueue.management.jobs_commands.base import Shell, Subcommand
from jobqueue.management.jobs_commands.selection import (
    add_filters,
    chosen_filter,
    matching,
    walk,
)
from jobqueue.models import Job
from jobqueue.states import State

STATES = (State.DEAD.value, State.CANCELLED.value)


class Requeue(Subcommand):
    """Takes ids or a filter."""

    name = "requeue"
    changes = True
    help = (
        "Make dead or cancelled jobs ready again, with a new budget of attempts; their history is "
        "kept. Name them, or choose all that match a filter."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_filters(parser, STATES)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        chosen = chosen_filter(options, STATES)
        if options["dry_run"]:
            count = _count(shell, options, chosen)
            shell.write(f"{count:,} job{'s' * (count != 1)} would be requeued.")
        elif chosen is None:
            shell.report(control.requeue(options["ids"], shell.actor, backend=shell.backend))
        else:
            shell.report(_requeue_matching(shell, chosen))


def _count(shell: Shell, options: Mapping[str, Any], chosen: Mapping[str, str] | None) -> int:
    if chosen is not None:
        return matching(shell, chosen).count()
    jobs = Job.objects.using(shell.database).filter(id__in=parse_ids(options["ids"]))
    return jobs.filter(state__in=STATES).count()


def _requeue_matching(shell: Shell, chosen: Mapping[str, str]) -> control.Outcome:
    jobs = matching(shell, chosen)
    counts: Counter[str] = Counter()
    for ids in walk(jobs):
        counts.update(control.requeue(ids, shell.actor, backend=shell.backend).counts)
        shell.progress(f"{sum(counts.values()):,} jobs …")
    shell.progress("")
    return control.Outcome("requeued", given_counts=dict(counts))
