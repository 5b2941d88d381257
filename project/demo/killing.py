"""kill -9: a worker process or a whole supervisor, in turn."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil
from django.utils import timezone

from jobqueue.models import Job, Worker
from project.demo.facts import Kill
from project.demo.fleet import Fleet

LOOK_SECONDS = 0.25
"""Between two looks for workers."""


@dataclass(slots=True)
class Spared:
    """Processes that must not be killed now: the frozen ones and their supervisors."""

    _pids: Counter[int] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *pids: int) -> None:
        """Spare `pids` until each has been removed as often as added."""
        with self._lock:
            self._pids.update(pids)

    def remove(self, *pids: int) -> None:
        """Undo one `add`."""
        with self._lock:
            self._pids.subtract(pids)

    def __contains__(self, pid: int) -> bool:
        return self._pids[pid] > 0


class Killer:
    """Kill a child of one of `supervisors` (names in the fleet), then a supervisor, and so on.

    One kill every `every` seconds, later where fewer than `least_workers` workers are up.
    """

    def __init__(
        self,
        fleet: Fleet,
        supervisors: Sequence[str],
        spared: Spared,
        *,
        every: float,
        least_workers: int,
        seed: int,
    ) -> None:
        self.kills: list[Kill] = []
        self._fleet = fleet
        self._supervisors = supervisors
        self._spared = spared
        self._every = every
        self._least_workers = least_workers
        self._random = random.Random(seed)
        self._wants_child = True
        self._turn = 0

    def run(self, stop: threading.Event) -> None:
        """Kill every `every` seconds until `stop` is set; never if that is 0."""
        due = time.monotonic()
        while self._every:
            due = max(due + self._every, time.monotonic())
            if stop.wait(due - time.monotonic()) or not self._wait_for_workers(stop):
                break
            self.run_once()

    def run_once(self) -> Kill | None:
        """Kill one process, or nothing if none of that kind is there to be killed."""
        kill = self._kill_child() if self._wants_child else self._kill_supervisor()
        if kill:
            self.kills.append(kill)
        self._wants_child = not self._wants_child
        return kill

    def _wait_for_workers(self, stop: threading.Event) -> bool:
        """Wait until enough workers are up; return False if `stop` is set before."""
        while len(busiest_first(self._children())) < self._least_workers:
            if stop.wait(LOOK_SECONDS):
                return False
        return True

    def _kill_child(self) -> Kill | None:
        candidates = [pid for pid in busiest_first(self._children()) if pid not in self._spared]
        if not candidates:
            return None
        try:
            os.kill(candidates[0], signal.SIGKILL)
        except ProcessLookupError:
            return None
        return Kill(timezone.now(), "child", candidates[0])

    def _kill_supervisor(self) -> Kill | None:
        for name in self._in_turn():
            if self._fleet.pid(name) not in self._spared:
                at = timezone.now()
                return Kill(at, "supervisor", self._fleet.kill(name))
        return None

    def _in_turn(self) -> list[str]:
        """Return the supervisors, the one killed longest ago first: each gets time to come back."""
        first = self._turn % len(self._supervisors)
        self._turn += 1
        return [*self._supervisors[first:], *self._supervisors[:first]]

    def _children(self) -> list[int]:
        pids = [pid for name in self._supervisors for pid in children_of(self._fleet.pid(name))]
        self._random.shuffle(pids)
        return pids


def children_of(pid: int) -> list[int]:
    """Return the ids of the processes that process `pid` has started and that are still alive."""
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []


def busiest_first(pids: Sequence[int]) -> list[int]:
    """Return those of `pids` that are live workers, the one with most running jobs first.

    A supervisor has other children too, such as Python's resource tracker: only what has a
    worker's row is a worker.
    """
    workers = dict(Worker.objects.filter(pid__in=pids, dead=False).values_list("pid", "pk"))
    running = Counter(
        Job.objects.filter(state="running", worker__in=workers.values()).values_list(
            "worker", flat=True
        )
    )
    return sorted((pid for pid in pids if pid in workers), key=lambda pid: -running[workers[pid]])
