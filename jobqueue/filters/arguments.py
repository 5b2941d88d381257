"""Arguments in filters: by name also where they were given by position.

A job keeps its arguments as they were given: ``send.enqueue(42)`` has a list with 42 and no names.
Which name stands at which position is known to the task's function, hence only in a process that
has imported it. `bindings_of` asks once; whoever keeps a filter keeps the answer with it, so that
another process finds the same jobs.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping

from django.db.models import Q
from django.db.models.lookups import In
from django.utils.module_loading import autodiscover_modules

from jobqueue.engine.registry import registry
from jobqueue.filters.terms import Filter, Term
from jobqueue.models.fields import DocumentText
from jobqueue.redaction import is_secret_name
from jobqueue.tasks import JobTask

logger = logging.getLogger("jobqueue")

Bindings = Mapping[str, Mapping[str, list[str]]]
"""For each name: the tasks that have it, by position (as text: it travels as JSON).

For a position that a filter names instead: under `SECRET`, the tasks that take a secret there.
"""
SECRET = "secret"

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def bindings_of(chosen: Filter) -> dict[str, dict[str, list[str]]]:
    """Return where the arguments that `chosen` names stand in the calls of each known task."""
    asked = {term.path[0] for term in chosen.of("args")}
    found: dict[str, dict[str, list[str]]] = {name: {} for name in sorted(asked)}
    if asked:
        _import_tasks()
    for task in registry if asked else ():
        for position, name in enumerate(_positional_names(task)):
            if name in asked:
                found[name].setdefault(str(position), []).append(task.module_path)
            if is_secret_name(name):
                for given in asked:
                    if given.isdecimal() and int(given) == position:
                        found[given].setdefault(SECRET, []).append(task.module_path)
    return found


def _import_tasks() -> None:
    """Import the tasks of the installed apps; a broken module hides only its own."""
    try:
        autodiscover_modules("tasks")
    except Exception:
        logger.warning("A module with tasks could not be imported for a filter", exc_info=True)


def _positional_names(task: JobTask[..., object]) -> list[str]:
    parameters = list(inspect.signature(task.func).parameters.values())
    return [p.name for p in parameters[task.takes_context :] if p.kind in _POSITIONAL]


def condition(term: Term, bindings: Bindings) -> Q:
    """Return the condition of a term about arguments."""
    first, *rest = term.path
    values = [value.text for value in term.values]
    if first.isdecimal():
        found = _is_one_of(("args", first, *rest), values)
        # By its name nobody may look for it; by its position they would find it all the same.
        hidden = bindings.get(first, {}).get(SECRET)
        return found & ~Q(task__in=sorted(hidden)) if hidden else found
    found = _is_one_of(("kwargs", first, *rest), values)
    for position, tasks in bindings.get(first, {}).items():
        found |= Q(task__in=sorted(tasks)) & _is_one_of(("args", position, *rest), values)
    return found


def _is_one_of(path: tuple[str, ...], values: list[str]) -> Q:
    return Q(In(DocumentText("arguments", *path), values))
