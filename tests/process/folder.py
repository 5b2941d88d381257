"""What a test and the processes that it starts tell each other, through files.

- notes: what happened in jobs, one line each, in order;
- gates: a job waits at one until the test opens it;
- faults: what should go wrong at a named point, once, in the first process that comes there.

The folder outlives every process, so that a note of a killed one is still there.
"""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

from tests.waiting import wait_until


class Folder:
    """Notes, gates and faults of one test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for name in ("gates", "faults"):
            (path / name).mkdir(parents=True, exist_ok=True)

    # --- notes: written by jobs, read by the test -------------------------------------------------

    def note(self, what: str, **facts: Any) -> None:
        """Add a line, in one write, so that lines of several processes stay whole."""
        line = json.dumps({"what": what, "pid": os.getpid(), **facts}) + "\n"
        descriptor = os.open(self.path / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def notes(self, what: str, **facts: Any) -> list[dict[str, Any]]:
        """Return the notes of one kind that have these facts.

        A reader may see the first part of a line that is being written, where it crosses a page
        of the file: what follows the last end of a line is not yet a note.
        """
        try:
            *lines, _ = (self.path / "notes").read_text().split("\n")
        except FileNotFoundError:
            return []
        wanted = {"what": what, **facts}
        return [note for note in map(json.loads, lines) if wanted.items() <= note.items()]

    def clear(self) -> None:
        """Forget notes, gates and faults."""
        for path in (self.path / "notes", *self.path.glob("gates/*"), *self.path.glob("faults/*")):
            path.unlink(missing_ok=True)

    # --- gates ------------------------------------------------------------------------------------

    def open_gate(self, name: str) -> None:
        """Let every job that waits, or will wait, at a gate go on."""
        (self.path / "gates" / name).touch()

    def is_open(self, name: str) -> bool:
        """Return whether a gate is open."""
        return (self.path / "gates" / name).exists()

    def wait_at(self, name: str) -> None:
        """Wait until a gate is open; a test that forgets it fails."""
        wait_until(lambda: self.is_open(name), f"gate {name} to open")

    # --- faults -----------------------------------------------------------------------------------

    def plant(self, point: str, fault: str) -> None:
        """Make the next process that reaches `point` suffer `fault` (see `strike`)."""
        (self.path / "faults" / point).write_text(fault)

    def is_planted(self, point: str) -> bool:
        """Return whether a fault waits at `point`."""
        return (self.path / "faults" / point).exists()

    def strike(self, point: str, **facts: Any) -> None:
        """Suffer what is planted at `point`: "exit" ends the process at once, "stop" freezes it.

        A note "fault" with these facts comes before it.
        """
        fault = self._take(point)
        if fault is None:
            return
        self.note("fault", point=point, **facts)
        if fault == "exit":
            os._exit(9)
        if fault == "stop":
            # Sent to the process, it would stop another thread first and this one a little later.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    def _take(self, point: str) -> str | None:
        planted = self.path / "faults" / point
        taken = planted.with_name(f"{point}-{os.getpid()}")
        try:
            planted.rename(taken)
        except FileNotFoundError:
            return None
        return taken.read_text()


def folder() -> Folder:
    """Return the folder of the test that this process belongs to."""
    return Folder(Path(os.environ["TEST_FOLDER"]))
