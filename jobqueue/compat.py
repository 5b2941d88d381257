"""The Tasks framework of the Django in use: core since 6.0, the django-tasks backport on 5.2.

Everything in jobqueue that touches the framework imports it from here. Importing this module
imports the framework, which registers its system checks and log receivers.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_QUEUE_NAME,
        Task,
        TaskContext,
        TaskResult,
        TaskResultStatus,
        task_backends,
    )
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.backends.dummy import DummyBackend
    from django.tasks.backends.immediate import ImmediateBackend
    from django.tasks.base import (
        DEFAULT_TASK_PRIORITY,
        TASK_MAX_PRIORITY,
        TASK_MIN_PRIORITY,
        TaskError,
    )
    from django.tasks.exceptions import (
        InvalidTask,
        InvalidTaskBackend,
        TaskResultDoesNotExist,
        TaskResultMismatch,
    )
    from django.tasks.signals import task_enqueued, task_finished, task_started

    FRAMEWORK_LOGGER = "django.tasks"
else:
    try:
        import django_tasks.signals  # noqa: F401 - also what its AppConfig would do
    except ImportError as error:
        raise ImportError(
            "jobqueue on Django 5.2 needs the Tasks framework's backport: install "
            "django-jobqueue[backport]."
        ) from error
    from django_tasks import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_QUEUE_NAME,
        TaskContext,
        TaskResult,
        TaskResultStatus,
        task_backends,
    )
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.backends.dummy import DummyBackend
    from django_tasks.backends.immediate import ImmediateBackend
    from django_tasks.base import (
        DEFAULT_TASK_PRIORITY,
        TASK_MAX_PRIORITY,
        TASK_MIN_PRIORITY,
        Task,
        TaskError,
    )
    from django_tasks.exceptions import (
        InvalidTaskBackendError as InvalidTaskBackend,
    )
    from django_tasks.exceptions import (
        InvalidTaskError as InvalidTask,
    )
    from django_tasks.exceptions import (
        TaskResultDoesNotExist,
        TaskResultMismatch,
    )
    from django_tasks.signals import task_enqueued, task_finished, task_started

    FRAMEWORK_LOGGER = "django_tasks"

__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "DEFAULT_TASK_PRIORITY",
    "DEFAULT_TASK_QUEUE_NAME",
    "TASK_MAX_PRIORITY",
    "TASK_MIN_PRIORITY",
    "BaseTaskBackend",
    "DummyBackend",
    "ImmediateBackend",
    "InvalidTask",
    "InvalidTaskBackend",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "signal_is_heard",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]

_framework_log = logging.getLogger(FRAMEWORK_LOGGER)


def signal_is_heard(signal: Any, level: int = logging.INFO) -> bool:
    """Return whether sending `signal` would have an effect.

    The framework's own log receiver is always connected. Building a TaskResult costs more than
    running a small job, so it is built only if somebody else listens, or if some handler would
    print what that receiver logs at `level`.
    """
    return len(signal.receivers) > 1 or _would_print(level)


_printed: dict[int, tuple[float, bool]] = {}
PRINTED_SECONDS = 0.1
"""How long an answer about log handlers is trusted: it is asked for every job."""


def _would_print(level: int) -> bool:
    now = time.monotonic()
    known = _printed.get(level)
    if known is None or now - known[0] > PRINTED_SECONDS:
        known = _printed[level] = (now, _is_printed(level))
    return known[1]


def _is_printed(level: int) -> bool:
    if not _framework_log.isEnabledFor(level):
        return False
    record = _framework_log.makeRecord(_framework_log.name, level, "", 0, "", (), None)
    logger: logging.Logger | None = _framework_log
    while logger is not None:
        if any(h.level <= level and h.filter(record) for h in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False
