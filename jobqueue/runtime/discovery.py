"""Looks for tasks that jobs wait for and this process did not import when it started.

A task that has moved and left an import behind at its old path is known by its new one only, until
a job asks for the old. Each name is looked for once (`Registry.get` remembers what it missed), and
only where the project's own code lives.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from jobqueue.events import emit
from jobqueue.exceptions import TaskNotRegistered
from jobqueue.storage import Storage
from jobqueue.tasks import JobTask, registry

LOOK_SECONDS = 5.0
"""Between two looks at what is blocked; as often as the sweep blocks jobs."""
MAX_NAMES = 100
"""Names read in one look: more than a project has tasks on the move."""


class Discovery:
    """Knows when to look again; `run_once` is called by the fetch loop."""

    def __init__(self) -> None:
        self._look_at = 0.0

    def run_once(
        self, storage: Storage, known: Mapping[str, JobTask[..., Any]]
    ) -> dict[str, JobTask[..., Any]]:
        """Return the tasks that jobs are blocked for, are not in `known`, and could be found."""
        now = time.monotonic()
        if now < self._look_at:
            return {}
        self._look_at = now + LOOK_SECONDS
        found = {}
        for name in storage.parked_tasks(MAX_NAMES):
            task = None if name in known else _find(name)
            if task is not None:
                found[name] = task
        return found


def _find(name: str) -> JobTask[..., Any] | None:
    try:
        task = registry.get(name)
    except TaskNotRegistered as error:
        logging.getLogger("jobqueue").debug("%s", error)
        return None
    emit("task.discovered", task=name, function=task.module_path)
    return task
