"""INT, TERM and HUP end a block once, and never the cleaning up after it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupted_once() -> Iterator[None]:
    """Turn the first of these signals into a KeyboardInterrupt and ignore the others.

    A terminal sends Ctrl-C to every process of the demo, and the outer process passes it on as
    well: the second one must not interrupt the `finally` that the first has started.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in NUMBERS:
            signal.signal(each, _pass_over)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pass_over(number: int, frame: FrameType | None) -> None:
    """Do nothing. Not SIG_IGN: Python prints an error for one that has arrived by then."""
