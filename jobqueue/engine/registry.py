"""The tasks this process knows, by name (module path).

A task registers itself where it is defined. A worker imports the `tasks` modules of all installed
apps and those of the IMPORTS option before it claims; a job of another task makes it look once
more, where the project's own code lives and nowhere else: a row in the database must not be able
to import any module there is.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from jobqueue.compat import Task
from jobqueue.conf import Options, jobqueue_aliases, options_for
from jobqueue.engine.mail_settings import MAIL, mail_aliases
from jobqueue.exceptions import TaskNotRegistered

if TYPE_CHECKING:
    from jobqueue.tasks import JobTask

MAX_REMEMBERED_MISSES = 10_000
"""Names that were looked for in vain; beyond this they are forgotten and looked for again."""


class Registry:
    """Name → task. Safe to use from any thread: each operation is one on a dict."""

    def __init__(self) -> None:
        self._tasks: dict[str, JobTask[..., Any]] = {}
        self._misses: dict[str, str] = {}

    def add(self, task: JobTask[..., Any]) -> None:
        """Register `task` under its module path.

        The first task of a function stays: `using()` makes others of it. A new function under a
        known name replaces the old one, as it does in its module.
        """
        name = task.module_path
        known = self._tasks.get(name)
        if known is None or known.func is not task.func:
            self._tasks[name] = task
            self._misses.pop(name, None)

    def get(self, name: str) -> JobTask[..., Any]:
        """Return the task called `name`; its module is imported once if it may be.

        Raise TaskNotRegistered, with the reason and the import's own error, if there is none.
        """
        task = self._tasks.get(name)
        if task is not None:
            return task
        if name in self._misses:
            raise TaskNotRegistered(self._misses[name])
        return self._look_for(name)

    def known(self, name: str) -> JobTask[..., Any] | None:
        """Return the task called `name` if it is registered; nothing is imported."""
        return self._tasks.get(name)

    def names(self) -> list[str]:
        """Return the names of all registered tasks, sorted."""
        return sorted(self._tasks)

    def __iter__(self) -> Iterator[JobTask[..., Any]]:
        """Iterate over the registered tasks."""
        return iter({id(task): task for task in list(self._tasks.values())}.values())

    def forget_misses(self) -> None:
        """Look again for names that were not found; for tests, and after settings changed."""
        self._misses.clear()

    def _look_for(self, name: str) -> JobTask[..., Any]:
        try:
            return self._imported(name)
        except TaskNotRegistered as error:
            if len(self._misses) >= MAX_REMEMBERED_MISSES:
                self._misses.clear()
            self._misses[name] = str(error)
            raise

    def _imported(self, name: str) -> JobTask[..., Any]:
        module_name, _, attribute = name.rpartition(".")
        if not may_import(module_name):
            raise TaskNotRegistered(
                f"Task {name!r} is not registered, and its module lies neither in an installed app "
                "nor in IMPORTS."
            )
        try:
            module = importlib.import_module(module_name)
        except Exception as error:
            raise TaskNotRegistered(
                f"Task {name!r} is not registered, and importing its module failed: {error!r}"
            ) from error
        if name in self._tasks:
            return self._tasks[name]
        found = getattr(module, attribute, None)
        if isinstance(found, Task):
            # Also one that has moved and left an import behind at its old path.
            return self._tasks.setdefault(name, as_job_task(found))
        raise TaskNotRegistered(f"There is no task {attribute!r} in module {module_name!r}.")


registry = Registry()


def may_import(module_name: str) -> bool:
    """Return whether `module_name` lies in an installed app or in IMPORTS of some alias."""
    parts = module_name.split(".")
    if not all(part.isidentifier() and not part.startswith("__") for part in parts):
        return False  # __main__ modules are scripts: importing one runs it
    roots = {app.name for app in apps.get_app_configs()}
    for alias in jobqueue_aliases():
        roots.update(options_for(alias).imports)
    return any(".".join(parts[:length]) in roots for length in range(1, len(parts) + 1))


def as_job_task(task: Task[..., Any]) -> JobTask[..., Any]:
    """Return `task` as ours, with default options; a task of another backend may be a plain one."""
    from jobqueue.tasks import JobTask

    if isinstance(task, JobTask):
        return task
    return JobTask(
        func=task.func,
        priority=task.priority,
        backend=task.backend,
        queue_name=task.queue_name,
        run_after=task.run_after,
        takes_context=task.takes_context,
    )


def autodiscover(options: Options) -> None:
    """Import the `tasks` module of every installed app, and the modules of IMPORTS; where mail is
    sent by jobs, also that of the mail.

    A module that fails to import raises its own error: a worker that ran without its tasks would
    leave their jobs waiting without a word.
    """
    autodiscover_modules("tasks")
    for module_name in options.imports:
        importlib.import_module(module_name)
    if mail_aliases():
        importlib.import_module(f"{MAIL}.tasks")


@cache
def discover() -> None:
    """Import, once in this process, the tasks of every alias, as its workers do."""
    for alias in jobqueue_aliases():
        autodiscover(options_for(alias))
