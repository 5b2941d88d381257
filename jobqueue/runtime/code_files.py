"""Whether the Python files that a process runs have changed (``runworker --reload``).

For development: it asks the file system for every module's file once a second. What is watched is
what the process itself has imported, so that a module which only a job imports counts, too.
"""

from __future__ import annotations

import os
import select
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

from django.utils import autoreload

LOOK_SECONDS = 1.0
_STARTED_AT = time.time()


class CodeFiles:
    """The files of all imported modules, and of `others` that could not be imported."""

    def __init__(self, others: Iterable[Path] = ()) -> None:
        self._others = tuple(others)
        self._seen: dict[Path, float] = {}

    def changed(self) -> Path | None:
        """Return a file that has changed since this process read it, None if none has."""
        for path in (*autoreload.iter_all_python_module_files(), *self._others):
            try:
                changed_at = path.stat().st_mtime
            except OSError:
                continue  # moved away, or being replaced: seen again when it is back
            known = self._seen.setdefault(path, changed_at)
            if changed_at != known or _STARTED_AT < known <= time.time():
                return path
        return None


def wait_for_repair(error: Exception, descriptor: int) -> bool:
    """Wait until a file has changed that may be why this process cannot work.

    Return False if its supervisor does not want it any more; `descriptor` brings orders.
    """
    code = CodeFiles(_files_of(error))
    while code.changed() is None:
        ordered, _, _ = select.select([descriptor], [], [], LOOK_SECONDS)
        if ordered:
            os.read(descriptor, 1)
            return False
    return True


def _files_of(error: Exception) -> set[Path]:
    """Return the files that an error names: those of its frames, and one that is no Python."""
    frames = traceback.extract_tb(error.__traceback__)
    names = {frame.filename for frame in frames}
    if isinstance(error, SyntaxError) and error.filename:
        names.add(error.filename)
    return {Path(name) for name in names if os.path.exists(name)}
