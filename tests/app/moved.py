"""Where a task used to be: an import is left behind for the jobs that name it by this path."""

from tests.process.tasks import write

__all__ = ["write"]
