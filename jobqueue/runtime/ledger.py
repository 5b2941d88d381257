"""Shared memory between a supervisor and a child: which jobs may be running, and counters.

The supervisor reads it after ``waitpid``, when nobody writes any more: it tells which jobs a
crash may have to do with. A slot writes fence, id and deadline first, then the flag; the flag is
cleared only after the outcome is committed. Flag 2 says that the code has ended and only its
record is outstanding: such a job did not kill the process.

It also reads it while the child runs, to see jobs past their deadline (on the monotonic clock,
which all processes of a host share), a run that goes on although its job was taken from it, and
whether the child's pulse goes on. What it sees then only leads to a look after ``waitpid``.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from uuid import UUID

from jobqueue.storage.records import Fenced

_ENTRY = struct.Struct("=q16sdB7x")
_FLAG_OFFSET = 32
_HEADER = struct.Struct("=7q")
_NUMBER = struct.Struct("=q")
_FAREWELL_OFFSET = _HEADER.size
_PULSE_OFFSET = _FAREWELL_OFFSET + _NUMBER.size
_UNWANTED = struct.Struct("=q16s")
_UNWANTED_OFFSET = _PULSE_OFFSET + _NUMBER.size
_HEADER_BYTES = 128
_FREE, _STARTED, _ENDED = 0, 1, 2


ENOUGH_EMPTY_LOOKS = 2
"""In a row: then a child has nothing to do. One may have come between an enqueue and its commit."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What a child has done so far; empty_looks: looks for jobs in a row that found none.

    is_leaving: it ends the jobs in hand and exits, and another should take its place.
    """

    claimed: int = 0
    succeeded: int = 0
    failed: int = 0
    running: int = 0
    empty_looks: int = 0
    is_ready: int = 0
    is_leaving: int = 0


class Ledger:
    """The shared memory of one child. One process creates it, its child opens it by descriptor."""

    def __init__(self, descriptor: int, capacity: int) -> None:
        self.descriptor = descriptor
        self.capacity = capacity
        self._map = mmap.mmap(descriptor, _HEADER_BYTES + capacity * _ENTRY.size)
        self._free = deque(range(capacity))

    @classmethod
    def create(cls, capacity: int) -> Ledger:
        """Return a new, empty ledger for `capacity` jobs at a time."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("jobqueue")
        else:
            descriptor, path = tempfile.mkstemp(prefix="jobqueue-")
            os.unlink(path)
        os.ftruncate(descriptor, _HEADER_BYTES + capacity * _ENTRY.size)
        return cls(descriptor, capacity)

    def close(self) -> None:
        """Unmap the memory and close the descriptor."""
        self._map.close()
        os.close(self.descriptor)

    # --- the child writes ----------------------------------------

    @property
    def room(self) -> int:
        """How many jobs more may start before an outcome is committed."""
        return len(self._free)

    def start(self, job_id: UUID, fence: int, timeout: float) -> int:
        """Note that the code of a job is about to run; return the entry to clear later.

        timeout: seconds from now on that it may run.
        """
        index = self._free.popleft()
        offset = _HEADER_BYTES + index * _ENTRY.size
        deadline = time.monotonic() + timeout
        _ENTRY.pack_into(self._map, offset, fence, job_id.bytes, deadline, _FREE)
        self._map[offset + _FLAG_OFFSET] = _STARTED
        return index

    def ended(self, index: int | None) -> None:
        """Note that the code has ended; its outcome is not yet committed. None: it has no entry."""
        if index is None:
            return
        self._map[_HEADER_BYTES + index * _ENTRY.size + _FLAG_OFFSET] = _ENDED

    def clear(self, index: int | None) -> None:
        """Note that the outcome is committed."""
        if index is None:
            return
        self._map[_HEADER_BYTES + index * _ENTRY.size + _FLAG_OFFSET] = _FREE
        self._free.append(index)

    def count(self, counters: Counters) -> None:
        """Publish the child's counters."""
        _HEADER.pack_into(
            self._map,
            0,
            counters.claimed,
            counters.succeeded,
            counters.failed,
            counters.running,
            counters.empty_looks,
            counters.is_ready,
            counters.is_leaving,
        )

    def say_farewell(self, code: int) -> None:
        """Note that this process is about to exit with `code` by its own decision."""
        _NUMBER.pack_into(self._map, _FAREWELL_OFFSET, code + 1)

    def beat(self) -> None:
        """Note that this process lives and can run Python code."""
        pulse = self.pulse()
        _NUMBER.pack_into(self._map, _PULSE_OFFSET, pulse + 1)

    def disown(self, fenced: Fenced) -> None:
        """Note that a run goes on whose job is no longer ours: this process should be replaced."""
        job_id, fence = fenced
        _UNWANTED.pack_into(self._map, _UNWANTED_OFFSET, fence, job_id.bytes)

    # --- the supervisor reads ----------------------------------------

    def farewell(self) -> int | None:
        """Return the exit code that the child decided on, None if it did not get to that.

        A job can leave with any code by ``os._exit()``; only this tells the two apart.
        """
        said: int = _NUMBER.unpack_from(self._map, _FAREWELL_OFFSET)[0]
        return said - 1 if said else None

    def counters(self) -> Counters:
        """Return what the child last published."""
        return Counters(*_HEADER.unpack_from(self._map, 0))

    def pulse(self) -> int:
        """Return a number that grows while the child lives; 0 before it does."""
        found: int = _NUMBER.unpack_from(self._map, _PULSE_OFFSET)[0]
        return found

    def started(self, past: float | None = None) -> set[Fenced]:
        """Return the jobs (id, fence) whose code may have been running.

        past: only those whose deadline lies before this time.
        """
        return self._jobs(_STARTED, past)

    def unwritten(self) -> set[Fenced]:
        """Return the jobs (id, fence) whose code has ended, without that being committed."""
        return self._jobs(_ENDED)

    def _jobs(self, wanted: int, past: float | None = None) -> set[Fenced]:
        entries = memoryview(self._map)[_HEADER_BYTES:]
        return {
            (UUID(bytes=raw), fence)
            for fence, raw, deadline, flag in _ENTRY.iter_unpack(entries)
            if flag == wanted and (past is None or deadline < past)
        }

    def disowned(self) -> set[Fenced]:
        """Return the run that was disowned, if its code may still be running."""
        fence, raw = _UNWANTED.unpack_from(self._map, _UNWANTED_OFFSET)
        return {(UUID(bytes=raw), fence)} & self.started() if fence else set()
