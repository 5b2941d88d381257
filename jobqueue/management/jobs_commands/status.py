"""``jobs status``: what is going on, for people, for programs, and as a probe."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError

from jobqueue import control
from jobqueue.engine.counts import COUNT_LIMIT, numbered
from jobqueue.engine.documents import plain
from jobqueue.engine.finding import Finding
from jobqueue.engine.findings import notices, problems
from jobqueue.engine.status import DeadWorker, WorkerStatus
from jobqueue.management.formats import age, clock_time, duration, whole
from jobqueue.management.jobs_commands.base import Shell, Subcommand, add_json
from jobqueue.management.jobs_commands.table import printable, render
from jobqueue.states import CHARGED, Outcome

CLEAR = "\x1b[H\x1b[2J"
"""Moves to the corner of a terminal and empties it."""

SHORTEST_WATCH_SECONDS = 0.1
"""Each look is a handful of queries: shorter ones would only load the database."""
HOUR_SECONDS = 3_600.0
CALM = frozenset({"alive", "stopped"})
"""States of a process that nobody needs to look at."""


class Status(Subcommand):
    """Prints a page, or fails as a probe."""

    name = "status"
    help = (
        "Show jobs by state, queues, workers and what is wrong. Exits 1, with the reason, if due "
        "jobs are not promoted, jobs of dead workers or past their deadline are not taken back, "
        "schedules are due and not ticked, jobs wait and no worker is alive, all attempts of a "
        "task fail, or a bound given with --max-age or --max-backlog is exceeded. Paused queues do "
        "not count against a bound. --fail-on warning also fails for what somebody should look at "
        "soon."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--max-age",
            type=duration,
            metavar="TIME",
            help="fail if a ready job has waited longer (90s, 30m, 12h)",
        )
        parser.add_argument(
            "--max-backlog", type=whole(0, 10**12), metavar="N", help="fail if more jobs are ready"
        )
        parser.add_argument(
            "--fail-on",
            choices=["error", "warning"],
            default="error",
            help="how bad it must be to fail (default: error)",
        )
        parser.add_argument(
            "--watch", type=duration, metavar="TIME", help="show again every so often, until Ctrl-C"
        )
        add_json(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        if options["watch"] is not None and options["watch"] < SHORTEST_WATCH_SECONDS:
            raise CommandError(f"--watch takes {SHORTEST_WATCH_SECONDS:g} s or more.")
        if options["watch"]:
            watch(
                lambda: _look(shell, options, clear=shell.is_terminal), options["watch"], time.sleep
            )
            return
        wrong = _look(shell, options)
        if wrong:
            raise CommandError(" ".join(map(str, wrong)))


def watch(look: Callable[[], object], seconds: float, sleep: Callable[[float], object]) -> None:
    """Call `look` every `seconds` until interrupted."""
    try:
        while True:
            look()
            sleep(seconds)
    except KeyboardInterrupt:
        return


def _look(shell: Shell, options: Mapping[str, Any], *, clear: bool = False) -> list[Finding]:
    """Print the state of things once; return what is wrong."""
    most = options["max_backlog"]
    limit = COUNT_LIMIT if most is None else max(COUNT_LIMIT, most + 1)
    current = control.status(shell.backend, count_limit=limit)
    wrong = problems(current, options["max_age"], most, options["fail_on"])
    others = notices(current, options["fail_on"])
    if options["json"]:
        shell.write_json(_document(current, wrong, others))
        return wrong
    text = "\n".join(_page(shell, current, wrong, others))
    shell.write(CLEAR + text if clear else text)
    return wrong


def _activity(shell: Shell) -> Iterator[str]:
    """Say what the last hour was like, if anything happened in it."""
    hour = control.statistics.totals(HOUR_SECONDS, backend=shell.backend)
    if hour.attempts:
        failed = sum(hour.outcomes.get(outcome, 0) for outcome in CHARGED)
        lost = hour.outcomes.get(Outcome.LOST, 0)
        yield (
            f"last hour: {numbered(hour.attempts, 'attempt')}, {failed:,} failed, "
            f"{lost:,} interrupted, {hour.per_minute:,.0f} a minute now; "
            f"waited {_spread(hour.wait)}; ran {_spread(hour.run)}"
        )


def _spread(spread: control.statistics.Spread) -> str:
    if spread.p50 is None or spread.p95 is None:
        return "–"
    return f"{spread.p50:.3g} s (p50), {spread.p95:.3g} s (p95)"


def _document(
    current: control.Status, wrong: Sequence[Finding], others: Sequence[Finding]
) -> dict[str, Any]:
    return {
        **current.as_dict(),
        "findings": plain([*wrong, *others]),
        "problems": [str(finding) for finding in wrong],
        "notices": [str(finding) for finding in others],
    }


def _page(
    shell: Shell, current: control.Status, wrong: Sequence[Finding], others: Sequence[Finding]
) -> Iterator[str]:
    style = shell.style
    yield style.MIGRATE_HEADING(
        f"TASKS[{current.backend!r}] on database {current.database!r} ({current.vendor}), "
        f"hints: {current.hints}, {clock_time(current.as_of)}"
    )
    yield ""
    yield from _counts(shell, current)
    yield from _activity(shell)
    yield ""
    yield from _queues(shell, current)
    if current.workers or current.dead_workers:
        yield ""
        yield from _workers(shell, current)
    if current.unknown_tasks:
        yield ""
        rows = [[name, str(count)] for name, count in current.unknown_tasks.items()]
        yield from render(["task no live worker has", "blocked"], rows, right=[1])
    yield ""
    for finding in wrong:
        yield style.ERROR(f"WRONG  {printable(str(finding))}")
    for finding in others:
        text = printable(str(finding))
        yield f"NOTE   {text}" if finding.severity == "info" else style.WARNING(f"WARN   {text}")
    if not wrong and all(finding.severity == "info" for finding in others):
        yield style.SUCCESS("OK     Nothing is late.")


def _counts(shell: Shell, current: control.Status) -> Iterator[str]:
    def paint(column: int, text: str) -> Callable[[str], str] | None:
        return shell.style.ERROR if column == states.index("dead") and text != "0" else None

    states = list(current.counts)
    rows = [[str(count) for count in current.counts.values()]]
    yield from render(
        states, rows, right=range(len(states)), paint=paint, header_paint=shell.style.MIGRATE_LABEL
    )
    ages = {
        "oldest ready": current.oldest_ready,
        "due but not promoted": current.oldest_unpromoted,
        "of a dead worker, not taken back": current.oldest_unreaped,
    }
    yield ", ".join(f"{name} {age(seconds)}" for name, seconds in ages.items())


def _queues(shell: Shell, current: control.Status) -> Iterator[str]:
    rows = [
        [
            queue.name,
            str(queue.ready),
            age(queue.oldest_ready_seconds),
            f"paused by {queue.paused_by}" if queue.paused else "open",
            queue.paused_reason,
        ]
        for queue in current.queues
    ]
    yield from render(
        ["queue", "ready", "oldest", "state", "reason"],
        rows,
        right=[1, 2],
        paint=lambda n, text: shell.style.WARNING if n == 3 and text != "open" else None,
        header_paint=shell.style.MIGRATE_LABEL,
    )


def _workers(shell: Shell, current: control.Status) -> Iterator[str]:
    rows = [
        [
            w.kind,
            w.name,
            f"{w.host}:{w.pid}",
            str(w.slots or "–"),
            age(w.heartbeat_seconds),
            _life(w),
        ]
        for w in current.workers
    ]
    rows += [
        [w.kind, w.name, f"{w.host}:{w.pid}", "–", age(w.seconds), _end(w)]
        for w in current.dead_workers
    ]
    yield from render(
        ["process", "name", "host:pid", "slots", "seen", "state"],
        rows,
        right=[3, 4],
        paint=lambda n, text: shell.style.WARNING if n == 5 and text not in CALM else None,
        header_paint=shell.style.MIGRATE_LABEL,
    )


def _place(worker: WorkerStatus | DeadWorker) -> tuple[str, str, str]:
    return worker.kind, worker.name, f"{worker.host}:{worker.pid}"


def _end(worker: DeadWorker) -> str:
    return worker.reason if worker.reason in CALM else f"dead: {worker.reason}"


def _life(worker: WorkerStatus) -> str:
    if worker.is_expired:
        return "lease ran out"
    return "draining" if worker.draining else "alive"
