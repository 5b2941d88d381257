"""Listening for hints: what a worker holds, and the thread behind it.

`Listener` is the whole contract (and hears nothing). `ThreadListener` runs one daemon thread that
connects, reads, and after any error reconnects with jittered, bounded back-off: it ends only by
`stop()`, or with a log line that says so. One line when it goes deaf, one when it hears again.

After each (re)connection every watched queue is hinted once, because what was sent meanwhile may
be lost.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from jobqueue.events import emit

READ_SECONDS = 0.25
"""Longest wait in one read: `stop()`, `want()` and `watch()` are heeded within it."""
MIN_BACKOFF_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 5.0
"""Longest pause between connection attempts: hints are back within it after an outage."""
STOP_SECONDS = 2.0
"""How long `stop()` waits for the thread, which may be in a read or a connection attempt."""


class Listener:
    """What a worker holds to hear hints; this one hears none. Any thread may call it."""

    kind: ClassVar[str] = "none"

    def __init__(self, queues: Sequence[str]) -> None:
        self._queues = tuple(queues)

    @property
    def is_listening(self) -> bool:
        """Whether a hint sent now would be heard."""
        return False

    def start(self) -> None:
        """Begin to listen; `want(True)` is needed before anything is heard."""

    def stop(self) -> None:
        """End the thread and its connection; a few hundred milliseconds at most, as a rule."""

    def want(self, wanted: bool) -> None:
        """Say whether the worker has free slots. While it has none, hints are left to others."""

    def watch(self, queues: Sequence[str]) -> None:
        """Listen for `queues` from now on; cheap when nothing changes."""

    def pass_on(self, queues: Iterable[str]) -> None:
        """Hand hints to another worker: after a full batch, or when no slot was free after all.

        Not after a claim that found nothing: idle workers would pass it around for ever.
        """


class ThreadListener(Listener):
    """A listener with a thread. Subclasses say how to connect, read and disconnect."""

    keeps_hints: ClassVar[bool]
    """Hints that nobody reads wait for another worker: read only while they are wanted. Otherwise
    reading goes on, and what is not wanted is dropped."""

    def __init__(self, alias: str, queues: Sequence[str], on_hint: Callable[[str], None]) -> None:
        super().__init__(queues)
        self._facts: dict[str, Any] = {"backend": alias, "via": self.kind}
        self._on_hint = on_hint
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._listening = threading.Event()
        self._change = threading.Condition()
        self._wanted = False
        self._is_deaf = False
        self._backoff = 0.0

    # --- what a subclass says: in the thread ------------------------------------------------------

    def _connect(self) -> bool:
        """Connect, so that hints sent from now on are heard; False if that can never be."""
        raise NotImplementedError

    def _read(self, queues: Sequence[str]) -> Iterable[str]:
        """Wait up to READ_SECONDS for hints about `queues`; return the names of those hinted."""
        raise NotImplementedError

    def _disconnect(self) -> None:
        """Drop the connection in whatever state it is."""
        raise NotImplementedError

    def _describe(self, error: Exception) -> str:
        """Return an error as one line without passwords."""
        raise NotImplementedError

    # --- what a worker calls ----------------------------------------------------------------------

    @property
    def is_listening(self) -> bool:
        return self._listening.is_set()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="jobqueue-hints", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self.want(False)
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def want(self, wanted: bool) -> None:
        if wanted != self._wanted:
            with self._change:
                self._wanted = wanted
                self._change.notify_all()

    def watch(self, queues: Sequence[str]) -> None:
        if tuple(queues) != self._queues:
            with self._change:
                self._queues = tuple(queues)
                self._change.notify_all()

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping.is_set() and self._listen_once():
                self._stopping.wait(self._backoff * random.uniform(0.5, 1.0))
        finally:
            if not self._stopping.is_set():
                emit("hints.listener_ended", level=logging.ERROR, **self._facts)

    def _listen_once(self) -> bool:
        """Listen over one connection until it fails; False if there is no use in another."""
        try:
            if not self._connect():
                return False
            if self._wanted:
                self._deliver(self._queues)
            self._listening.set()
            while not self._stopping.is_set():
                self._turn()
        except Exception as error:
            self._failed(error)
        finally:
            self._listening.clear()
            self._disconnect_quietly()
        return True

    def _turn(self) -> None:
        if self.keeps_hints and not self._is_wanted():
            return
        hinted = self._read(self._queues)
        self._heard()
        self._deliver(hinted)

    def _is_wanted(self) -> bool:
        """Wait a while for a reason to read; return whether there is one."""
        with self._change:
            return self._change.wait_for(lambda: bool(self._wanted and self._queues), READ_SECONDS)

    def _deliver(self, hinted: Iterable[str]) -> None:
        names = dict.fromkeys(hinted)
        if not self._wanted:
            if names and self.keeps_hints:
                self.pass_on(names)  # a slot was taken while the read waited
            return
        for queue in names:
            self._on_hint(queue)

    def _heard(self) -> None:
        """Reading works: forget the failures (connecting alone proves little)."""
        if self._is_deaf:
            emit("hints.listening_recovered", **self._facts)
        self._is_deaf = False
        self._backoff = 0.0

    def _failed(self, error: Exception) -> None:
        self._backoff = min(max(self._backoff * 2, MIN_BACKOFF_SECONDS), MAX_BACKOFF_SECONDS)
        if not self._is_deaf and not self._stopping.is_set():
            self._is_deaf = True
            emit(
                "hints.listening_failed",
                level=logging.WARNING,
                **self._facts,
                error=self._describe(error),
            )

    def _disconnect_quietly(self) -> None:
        try:
            self._disconnect()
        except Exception:
            logging.getLogger("jobqueue").debug("Dropping a broken connection", exc_info=True)
