"""Checks of the schedules that code declares: that each could make a job. No database is asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from django.core.checks import CheckMessage, Error, Warning

from jobqueue.conf import options_for
from jobqueue.declarations import Declaration
from jobqueue.engine.aliases import aliases_of
from jobqueue.engine.declared import declarations, declared_twice
from jobqueue.engine.schedule_rows import checked
from jobqueue.exceptions import InvalidSchedule


def check_schedules(alias: str) -> Iterator[CheckMessage]:
    """Yield what is wrong with the schedules of a TASKS alias whose options can be used."""
    for name, one in declarations(alias).items():
        yield from _usable(alias, one)
        yield from _has_ticks(alias, name, one)
    for name in sorted(declared_twice(alias)):
        yield Error(
            f"TASKS[{alias!r}]: schedule {name!r} is declared in OPTIONS['SCHEDULES'] and by "
            "schedule(); only the first is used.",
            hint="Remove one of them, or give it another name.",
            id="jobqueue.E031",
        )
    yield from _taken_names(alias)


def _usable(alias: str, one: Declaration) -> Iterator[CheckMessage]:
    try:
        checked(one, alias)
    except InvalidSchedule as error:
        yield Error(
            f"TASKS[{alias!r}]: schedule {one.name!r} could make no job: {error}",
            hint="Name a task of an installed app, and give it the arguments that it takes.",
            id="jobqueue.E030",
        )


def _has_ticks(alias: str, name: str, one: Declaration) -> Iterator[CheckMessage]:
    if one.plan.after(datetime.now(UTC)) is None:
        yield Warning(
            f"TASKS[{alias!r}]: schedule {name!r} has no tick left: its time or end has passed.",
            hint="Remove it, or give it another time.",
            id="jobqueue.W030",
        )


def _taken_names(alias: str) -> Iterator[CheckMessage]:
    """Yield names that another alias of the same database has: their rows would be one."""
    others = [a for a in aliases_of(options_for(alias).database) if a < alias]
    for other in others:
        for name in sorted(declarations(alias).keys() & declarations(other).keys()):
            yield Error(
                f"TASKS[{alias!r}] and TASKS[{other!r}] share a database, and both declare the "
                f"schedule {name!r}.",
                hint="Give one of them another name.",
                id="jobqueue.E031",
            )
