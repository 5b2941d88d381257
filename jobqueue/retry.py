"""Back-off: how long until the next attempt. One function for every cause of a retry.

Exceptions, time-outs and lost workers all ask `delay_seconds`, so a task's policy holds for
each of them. Jitter never leads below the minimum or above the cap. Whether there is a next
attempt at all is decided in `jobqueue.engine.outcomes` (lost workers: `jobqueue.engine.recovery`).
"""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

logger = logging.getLogger("jobqueue")

MAX_DELAY_SECONDS = 366 * 86_400.0
"""No policy, also a user's own, delays a retry by more than a year: a typo must not hide a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential back-off: ``base × factor^(n-1)`` seconds before retry n, capped, jittered.

    base, minimum, cap: seconds. factor: at least 1 (1 is a constant delay). jitter: a fraction
    of the delay, spread evenly to both sides, so that a fleet's retries do not fall together.
    """

    base: float = 5.0
    factor: float = 4.0
    cap: float = 6 * 3_600.0
    jitter: float = 0.15
    minimum: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.cap <= MAX_DELAY_SECONDS:
            raise ValueError("A back-off needs 0 <= minimum <= cap <= one year, in seconds.")
        if self.base < 0 or self.factor < 1 or not 0 <= self.jitter <= 1:
            raise ValueError("A back-off needs base >= 0, factor >= 1 and 0 <= jitter <= 1.")

    def __call__(self, number: int, exception: BaseException | None = None) -> float:
        """Return the seconds before retry `number` (1, 2, …)."""
        exponent = min(max(number, 1) - 1, 64)  # 4^64 is past every cap; larger ones overflow
        try:
            delay = min(self.base * self.factor**exponent, self.cap)
        except OverflowError:
            delay = self.cap if self.base else 0.0
        delay *= 1 + self.jitter * (2 * random.random() - 1)
        return min(max(delay, self.minimum), self.cap)


RetryPolicy = Callable[[int, BaseException | None], float]
"""Any callable ``(number, exception or None) -> seconds``; `exception` is None for lost workers."""


def delay_seconds(
    policy: RetryPolicy, number: int, exception: BaseException | None = None
) -> float:
    """Return the delay that `policy` gives before retry `number`, forced into 0 … one year.

    A policy of the user's that raises or returns nonsense must not keep the job from being
    recorded: the default back-off answers for it.
    """
    try:
        delay = float(policy(number, exception))
        if delay != delay:  # NaN
            raise ValueError("not a number")
    except BaseException as error:  # also SystemExit, which would end the slot's thread
        logger.warning(
            "The retry policy %s failed (%s): the default back-off answers for it",
            getattr(policy, "__qualname__", type(policy).__name__),
            type(error).__name__,
        )
        delay = Backoff()(number)
    return min(max(delay, 0.0), MAX_DELAY_SECONDS)
