"""``jobs schedules``: see the schedules and their next ticks; enable, disable, run, delete one."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError

from jobqueue import control
from jobqueue.declarations import Declaration
from jobqueue.engine.declared import not_taken_over
from jobqueue.engine.registry import autodiscover
from jobqueue.engine.schedule_status import PastTick, ScheduleStatus, history
from jobqueue.management.formats import clock_time, whole
from jobqueue.management.jobs_commands.base import Shell, Subcommand, add_json
from jobqueue.management.jobs_commands.table import printable, render
from jobqueue.models import Action
from jobqueue.plan import PlannedTick

ACTIONS = ("list", "show", "enable", "disable", "run", "delete")
DEFAULT_COUNT = 5
MOST_COUNT = 100
ACTIONS_SHOWN = 10


class Schedules(Subcommand):
    """Lists, shows, or does one thing with one schedule."""

    name = "schedules"
    changes = True
    help = (
        "List the schedules, or show, enable, disable, run or delete one. What is enabled counts "
        "from now; what it missed is not made up for."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "action", nargs="?", choices=ACTIONS, default="list", help="what to do (default: list)"
        )
        parser.add_argument("schedule", nargs="?", metavar="NAME", help="name of a schedule")
        parser.add_argument(
            "--count",
            type=whole(0, MOST_COUNT),
            default=DEFAULT_COUNT,
            metavar="N",
            help=f"next ticks that `show` and --json tell (default: {DEFAULT_COUNT})",
        )
        parser.add_argument("--reason", default="", help="why it is disabled, for whoever wonders")
        add_json(parser)

    def run(self, shell: Shell, options: Mapping[str, Any]) -> None:
        action, name = options["action"], options["schedule"]
        if action == "list":
            _list(shell, options)
            return
        if name is None:
            raise CommandError(f"Name a schedule: jobs schedules {action} NAME.")
        if action == "show":
            _show(shell, name, options)
        elif action == "enable":
            shell.report(control.enable_schedule(name, shell.actor, backend=shell.backend))
        elif action == "disable":
            shell.report(
                control.disable_schedule(
                    name, shell.actor, options["reason"], backend=shell.backend
                )
            )
        elif action == "run":
            _run(shell, name)
        else:
            shell.report(control.delete_schedule(name, shell.actor, backend=shell.backend))


def _run(shell: Shell, name: str) -> None:
    outcome = control.run_schedule(name, shell.actor, backend=shell.backend)
    shell.report(outcome)
    for job_id in outcome.results:
        shell.write(f"job {job_id}")


def _list(shell: Shell, options: Mapping[str, Any]) -> None:
    found = control.schedules(shell.backend, count=options["count"] if options["json"] else 1)
    awaited = _not_taken_over(shell)
    if options["json"]:
        declared = [{"name": one.name, "task": one.task} for one in awaited]
        shell.write_json({"schedules": [_document(one) for one in found], "declared": declared})
        return
    if found:
        _write_table(shell, found)
    if awaited:
        shell.write("Declared, not yet taken over: a worker or scheduler does it at its start.")
        for one in awaited:
            shell.write(f"  {printable(one.name)}  {one.plan.words()}, {printable(one.task)}")
    elif not found:
        shell.write(
            "There is no schedule. Declare one beside its task with schedule(), or some in "
            "OPTIONS['SCHEDULES']."
        )


def _not_taken_over(shell: Shell) -> list[Declaration]:
    """Return the schedules that only the code knows, as far as its modules can be imported."""
    try:
        autodiscover(shell.options)
    except Exception as error:  # any: it is the project's code
        shell.stderr.write(
            f"A module with tasks cannot be imported ({printable(str(error))}): schedules that are "
            "declared beside its tasks are not known here."
        )
    return not_taken_over(shell.backend)


def _write_table(shell: Shell, found: Sequence[ScheduleStatus]) -> None:
    for line in render(
        ["schedule", "state", "plan", "zone", "next tick", "last tick", "task"],
        [
            [
                one.schedule.name,
                _state(one),
                one.words,
                one.schedule.time_zone,
                _next(one.next_ticks) if one.state == "ticking" else "–",
                _last(one.last),
                one.schedule.task,
            ]
            for one in found
        ],
        paint=lambda n, text: _color(shell, text) if n == 1 else None,
        header_paint=shell.style.MIGRATE_LABEL,
    ):
        shell.write(line)


def _show(shell: Shell, name: str, options: Mapping[str, Any]) -> None:
    found = control.schedules(shell.backend, name=name, count=options["count"])
    if not found:
        raise CommandError(f"There is no schedule {name!r} in database {shell.database!r}.")
    if options["json"]:
        shell.write_json(_document(found[0]))
        return
    for line in _page(shell, found[0]):
        shell.write(line)


def _page(shell: Shell, one: ScheduleStatus) -> Iterator[str]:
    row = one.schedule
    yield shell.style.MIGRATE_HEADING(printable(row.name))
    yield f"  {'state':<10}{(_color(shell, _state(one)) or str)(_state(one))}"
    facts = {
        "error": row.error,
        "plan": f"{one.words} ({row.cron or row.every_seconds or clock_time(row.at)})",
        "zone": row.time_zone,
        "from, to": f"{clock_time(row.start_at)}, {clock_time(row.end_at)}",
        "task": row.task,
        "queue": f"{row.queue_name or 'of the task'}, priority "
        f"{'of the task' if row.priority is None else row.priority}",
        "missed": row.missed + (f", at most {row.missed_limit}" if row.missed == "all" else ""),
        "overlap": f"{row.overlap}, jitter {row.jitter_seconds} s",
        "source": "code"
        if row.source == "code"
        else f"database, made {clock_time(row.created_at)}",
    }
    yield from (f"  {key:<10}{printable(text)}" for key, text in facts.items() if text)
    yield from _ticks(shell, one)
    yield from _actions(shell, row.name)


def _ticks(shell: Shell, one: ScheduleStatus) -> Iterator[str]:
    if one.next_ticks:
        yield ""
        yield from render(
            ["next tick", "in UTC", "note"],
            [
                [f"{t.local:%Y-%m-%d %H:%M:%S%z}", f"{t.at:%Y-%m-%d %H:%M:%S}", t.note]
                for t in one.next_ticks
            ],
            header_paint=shell.style.MIGRATE_LABEL,
        )
    past = history(one.schedule)
    if past:
        yield ""
        yield from render(
            ["past tick", "outcome", "missed before it", "job", "its state"],
            [
                [
                    clock_time(tick.tick),
                    tick.outcome,
                    str(tick.missed),
                    str(tick.job_id or "–"),
                    tick.job_state or "–",
                ]
                for tick in past
            ],
            right=[2],
            header_paint=shell.style.MIGRATE_LABEL,
        )


def _actions(shell: Shell, name: str) -> Iterator[str]:
    rows = Action.objects.using(shell.database).filter(target=name, verb__endswith="_schedule")
    actions = list(rows.order_by("-id")[:ACTIONS_SHOWN])
    if actions:
        yield ""
        yield from render(
            ["action", "who", "through", "when", "why"],
            [
                [
                    action.verb,
                    action.actor,
                    action.surface,
                    clock_time(action.at),
                    str((action.detail or {}).get("reason", "")),
                ]
                for action in actions
            ],
            header_paint=shell.style.MIGRATE_LABEL,
        )


def _document(one: ScheduleStatus) -> dict[str, Any]:
    row = one.schedule
    columns = (
        "name", "backend", "source", "task", "queue_name", "priority", "cron", "every_seconds",
        "at", "time_zone", "start_at", "end_at", "missed", "missed_limit", "overlap",
        "jitter_seconds", "enabled", "error", "version",
    )  # fmt: skip
    return {
        **{name: getattr(row, name) for name in columns},
        "state": one.state,
        "late": one.is_late,
        "words": one.words,
        "next_ticks": [tick._asdict() for tick in one.next_ticks],
        "last": one.last and {name: getattr(one.last, name) for name in one.last.__slots__},
    }


def _next(ticks: list[PlannedTick]) -> str:
    return f"{ticks[0].local:%Y-%m-%d %H:%M:%S%z}" if ticks else "–"


def _last(last: PastTick | None) -> str:
    if last is None:
        return "–"
    what = last.job_state or ("pruned" if last.job_id else last.outcome)
    return f"{clock_time(last.tick)} {what}"


def _state(one: ScheduleStatus) -> str:
    return "late" if one.is_late else one.state


def _color(shell: Shell, state: str) -> Any:
    style = shell.style
    return {
        "failing": style.ERROR,
        "late": style.ERROR,
        "disabled": style.WARNING,
        "undeclared": style.WARNING,
    }.get(state)
