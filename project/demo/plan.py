"""The figures of one run, each with its reason. Times are in seconds."""

from dataclasses import dataclass
from typing import Any

from project.demo.options import DemoOptions

SUPERVISORS = 3
"""Three, so that two are left while one is killed and started again."""
PROCESSES = 2
THREADS = 4
LEASE_SECONDS = 8.0
"""Short, so that a frozen worker is declared dead while people watch; longer than a busy machine
with two cores keeps a healthy one waiting."""
HEARTBEAT_SECONDS = 1.5
POLL_SECONDS = 0.5
GRACE_SECONDS = 5.0
SUSPICIONS = 50
"""Far above the default: the killer hits innocent jobs, and one hit three times by chance must
not be buried as poison."""
POSTERS = 8
"""Orders in flight at once."""
LOAD_SECONDS = 25.0
MIN_ORDERS_PER_SECOND = 20.0
MAX_ORDERS_PER_SECOND = 40.0
"""What two cores take beside all those processes being killed and started."""
WORK_SECONDS = 0.15
"""So that a kill finds jobs at work."""
GATEWAY_TIMEOUT_SECONDS = 1.0
GATEWAY_LATE_SECONDS = 2.0
"""Twice the time-out: the answer certainly comes too late."""
CHECKPOINT_SECONDS = 1.5
"""Time for the freezer to see the report and stop the process inside."""
READY_SECONDS = 90.0
"""The longest wait for servers and workers to come up."""
FREEZE_SECONDS = 75.0
"""The longest wait for frozen workers to be declared dead, replaced and thawed."""
DRAIN_SECONDS = 120.0
"""The longest wait for the last jobs once no more orders and kills come."""
MIN_KILLS = 10
"""Fewer prove little; the killer goes on past the load until there are so many."""
LEAST_WORKERS = 3
"""The killer waits until so many are up: where processes start slowly it would otherwise keep
every worker from ever running a job, and interrupt none."""
KILL_SECONDS = 60.0
"""The longest wait for the kills still missing when the load has ended."""
LATE_LOAD_SECONDS = 40.0
"""How far the load may fall behind before it is cut short."""
TOTAL_SECONDS = 220.0
"""The longest run before its audit, whatever the single waits would allow."""
UNGUARDED_STORAGE = "project.demo.unguarded.UnguardedStorage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run with `options` does: how long it posts, whom it freezes, how workers are set."""

    options: DemoOptions

    @property
    def load_seconds(self) -> float:
        """How long orders are posted: 25 s, less for a few orders, more for very many."""
        orders = self.options.orders
        shortest = orders / MAX_ORDERS_PER_SECOND
        return max(shortest, min(LOAD_SECONDS, orders / MIN_ORDERS_PER_SECOND))

    @property
    def least_kills(self) -> int:
        """How many kills a run must have seen: ten, or as many as fit into a short load."""
        if not self.options.kill_every:
            return 0
        return min(MIN_KILLS, int(self.load_seconds / self.options.kill_every))

    @property
    def freezes(self) -> int:
        """How many workers to freeze. Several without the guard: doubles must be certain there."""
        return 1 if self.options.guard else 3

    @property
    def marked(self) -> frozenset[int]:
        """The numbers (from 0) of the marked orders, spread over the first half.

        More than are to be frozen: some run in a process that is killed, or cut off from its
        supervisor, before it can be stopped.
        """
        count = 3 * self.freezes + 1
        orders = self.options.orders
        return frozenset(orders * n // (2 * count + 2) for n in range(1, count + 1))

    @property
    def engine_options(self) -> dict[str, Any]:
        """The OPTIONS of the TASKS alias for every process of the demo."""
        options: dict[str, Any] = {
            "LEASE_SECONDS": LEASE_SECONDS,
            "HEARTBEAT_SECONDS": HEARTBEAT_SECONDS,
            "POLL_SECONDS": POLL_SECONDS,
            "GRACE_SECONDS": GRACE_SECONDS,
            "SUSPICIONS": SUSPICIONS,
        }
        if not self.options.guard:
            options |= {"STORAGE": UNGUARDED_STORAGE, "SELF_EXIT": False, "END_SESSIONS": False}
        return options
