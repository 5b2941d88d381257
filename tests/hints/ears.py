"""A listener that remembers what it heard, for tests that wait on conditions."""

import threading
from collections.abc import Callable, Sequence

from jobqueue import hints
from project.servers.process import wait_until

PATIENCE_SECONDS = 30.0
"""How long a test waits for what must come; far beyond what it takes."""


class Ear:
    """A started listener of TASKS alias `default`, and the queues it heard of."""

    def __init__(self, queues: Sequence[str], wants: bool = True) -> None:
        self.heard: list[str] = []
        self._changed = threading.Condition()
        self.listener = hints.listen("default", queues, self.hear)
        self.listener.start()
        until(lambda: self.listener.is_listening)
        self.listener.want(wants)

    def hear(self, queue: str) -> None:
        with self._changed:
            self.heard.append(queue)
            self._changed.notify_all()

    def wait_for(self, queue: str) -> None:
        """Wait until a hint about `queue` was heard, and forget all heard so far."""
        with self._changed:
            assert self._changed.wait_for(lambda: queue in self.heard, PATIENCE_SECONDS)
            self.heard.clear()


def until(condition: Callable[[], bool]) -> None:
    assert wait_until(condition, PATIENCE_SECONDS)


def until_heard(ear: Ear, queue: str) -> None:
    """Send hints about `queue` until `ear` hears one: some may be lost meanwhile."""

    def sent_and_heard() -> bool:
        hints.send("default", [queue])
        return queue in ear.heard

    until(sent_and_heard)
    ear.heard.clear()
