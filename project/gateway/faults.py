"""Which deliveries go wrong. The work is done all the same: that is what makes keys necessary."""

import random
from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    NONE = "none"
    LATE = "late"  # the answer comes after the client has given up
    ERROR = "error"  # the answer is a 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """Rates are fractions of all deliveries; late_seconds must exceed the client's time-out.

    The fault of delivery n depends on (seed, n) alone, so two runs with one seed see the same
    pattern whatever keys they draw and whichever thread comes first.
    """

    seed: int = 7
    late_rate: float = 0.02
    error_rate: float = 0.03
    late_seconds: float = 3.0

    def fault_of(self, number: int) -> Fault:
        """Return what goes wrong with delivery `number`."""
        draw = random.Random(f"{self.seed}:{number}").random()
        if draw < self.late_rate:
            return Fault.LATE
        if draw < self.late_rate + self.error_rate:
            return Fault.ERROR
        return Fault.NONE
