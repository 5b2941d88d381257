"""A thread that works beside the main one, ends when told to, and hides no error."""

import threading
from collections.abc import Callable

from django.db import connections

JOIN_SECONDS = 20.0


class Background:
    """Run `work(stop)` in a thread; it returns soon after the event `stop` is set."""

    def __init__(self, name: str, work: Callable[[threading.Event], None]) -> None:
        self._work = work
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def is_running(self) -> bool:
        """Return whether the work goes on. Raise what it raised."""
        if self._error:
            raise self._error
        return self._thread.is_alive()

    def stop(self) -> None:
        """Tell the work to end and wait until it has."""
        self._stop.set()
        self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        try:
            self._work(self._stop)
        except BaseException as error:  # raised again where somebody looks
            self._error = error
        finally:
            connections.close_all()
