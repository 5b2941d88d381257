"""What the caller of the demo can change."""

from dataclasses import dataclass

AUDIT_PASSED = 0
AUDIT_FAILED = 1
COULD_NOT_RUN = 2
"""Not 1: a run without the guard that never began must not look like one whose audit failed."""
INTERRUPTED = 130
"""Exit codes of `manage.py demo`."""


class DemoError(Exception):
    """The demo could not run to its audit; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """The options of `manage.py demo`, each with an environment variable of the same name.

    orders: how many to post. kill_every: seconds between two kills, 0 for none. fail_rate:
    fraction of attempts that fail on purpose. guard: False runs the workers with a storage
    that does not check whose job it finishes. seed: of the gateway's faults and the choice of
    victims.
    """

    orders: int = 500
    kill_every: float = 2.0
    fail_rate: float = 0.05
    guard: bool = True
    seed: int = 7

    def __post_init__(self) -> None:
        if not 1 <= self.orders <= 100_000:
            raise DemoError(f"ORDERS must be between 1 and 100,000, not {self.orders}.")
        if not 0 <= self.kill_every <= 3_600:
            raise DemoError(f"KILL_EVERY must be 0 to 3600 seconds, not {self.kill_every:g}.")
        if not 0 <= self.fail_rate <= 0.5:
            # More would use up every attempt of some jobs, and a dead letter is no proof.
            raise DemoError(f"FAIL_RATE must be between 0 and 0.5, not {self.fail_rate:g}.")
