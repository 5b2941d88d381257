"""Checks of the limits that tasks say. Only tasks that are imported by now are known."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.checks import CheckMessage, Warning

from jobqueue.engine.registry import registry


def check_limits() -> Iterator[CheckMessage]:
    """Yield limits that several tasks share and give different numbers."""
    said: dict[str, dict[tuple[int | None, int | None, float | None], str]] = {}
    for path in registry.names():
        limit = registry.get(path).limit
        if limit is not None:
            said.setdefault(limit.name_for(path), {}).setdefault(limit.numbers, path)
    for name, tasks in said.items():
        if len(tasks) > 1:
            yield Warning(
                f"Tasks {', '.join(tasks.values())} share the limit {name!r}, and give it "
                "different numbers; the smallest hold.",
                hint="Make one Limit and give it to all of them, or give them other names.",
                id="jobqueue.W005",
            )
