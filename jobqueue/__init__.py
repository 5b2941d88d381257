"""jobqueue: background jobs for Django whose effects are committed exactly once.

The names below are the public ones. Those that need Django's Tasks framework, and with it
settings, are imported when they are first asked for, so that ``jobqueue`` can stand in
INSTALLED_APPS.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jobqueue.exceptions import (
    Cancel,
    GiveUp,
    JobQueueError,
    Retry,
    Snooze,
    TimeLimitExceeded,
)
from jobqueue.limits import Limit
from jobqueue.retry import Backoff
from jobqueue.unique import Unique

if TYPE_CHECKING:
    from jobqueue.engine.declared import schedule
    from jobqueue.results import JobResult
    from jobqueue.tasks import JobTask, task

__version__ = "0.1.0"

__all__ = [
    "Backoff",
    "Cancel",
    "GiveUp",
    "JobQueueError",
    "JobResult",
    "JobTask",
    "Limit",
    "Retry",
    "Snooze",
    "TimeLimitExceeded",
    "Unique",
    "__version__",
    "schedule",
    "task",
]

_LAZY = {
    "JobResult": "jobqueue.results",
    "JobTask": "jobqueue.tasks",
    "schedule": "jobqueue.engine.declared",
    "task": "jobqueue.tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
