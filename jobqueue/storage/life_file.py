"""A file whose lock says that a worker lives: the life of a process on SQLite, one host.

A worker opens a file of its own once, beside the database, and holds a POSIX record lock on it
(``fcntl.lockf``) until it ends. The kernel drops the lock with the process, however that dies: no
beat, no clock. ``flock`` would not do: a process that a job forked keeps it, record locks are
never inherited.

Guarantees: a file that another process finds unlocked, or missing, belongs to a process that has
ended (or never held it). Does not guarantee progress: a frozen process still holds its lock.

POSIX drops a process's locks on a file when it closes *any* descriptor of that file: a process
never opens its own file a second time, and answers for itself from memory.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from uuid import UUID

FOLDER_SUFFIX = ".jobqueue"
FILE_SUFFIX = ".life"

_held: dict[Path, tuple[int, int]] = {}
"""What this process holds: path to (its pid, descriptor). A forked child finds its parent's pid
here, and knows that the lock is not its own."""


class LifeFile:
    """The life file of one identity, beside an SQLite database."""

    def __init__(self, database: str | Path, identity: UUID) -> None:
        self.identity = identity
        self.path = _folder_of(database) / f"{identity.hex}{FILE_SUFFIX}"

    def hold(self) -> None:
        """Take the lock for as long as this process lives; nothing happens if it is held already.

        To be called before the worker's row exists: a row without a lock is a dead worker's.
        """
        if self.is_ours():
            return
        self.path.parent.mkdir(exist_ok=True)
        _held[self.path] = (os.getpid(), -1)  # from here on no thread of ours probes the file
        try:
            _held[self.path] = (os.getpid(), _open_locked(self.path))
        except BaseException:
            del _held[self.path]
            raise

    def is_ours(self) -> bool:
        """Return whether this very process holds the lock."""
        return self.path in _held and _held[self.path][0] == os.getpid()

    def is_held(self) -> bool:
        """Return whether a living process holds the lock; a missing file says no."""
        if self.is_ours():
            return True
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            # Shared: two processes that look at the same time do not take each other for it.
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return True
            raise
        finally:
            os.close(descriptor)
        return False

    def release(self) -> None:
        """Drop the lock, if this process holds it; the file stays."""
        if self.is_ours():
            _, descriptor = _held.pop(self.path)
            os.close(descriptor)

    def remove(self) -> None:
        """Delete the file of a process that has ended, or our own after releasing it."""
        self.release()
        with suppress(FileNotFoundError):
            self.path.unlink()


def life_files(database: str | Path) -> list[LifeFile]:
    """Return the life files that exist beside `database`, held or not, in order of identity."""
    found = []
    for path in sorted(_folder_of(database).glob(f"*{FILE_SUFFIX}")):
        with suppress(ValueError):  # not a name of ours
            found.append(LifeFile(database, UUID(hex=path.stem)))
    return found


def _folder_of(database: str | Path) -> Path:
    return Path(f"{os.path.realpath(database)}{FOLDER_SUFFIX}")


def _open_locked(path: Path) -> int:
    """Return a descriptor that holds the lock of the file which is at `path` now.

    A sweep may delete the new file between its opening and its locking: then again.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX)  # waits, at most for another's short look
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
