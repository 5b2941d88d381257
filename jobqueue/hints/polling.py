"""No hints: workers find new jobs by polling alone."""

from __future__ import annotations

from typing import ClassVar

from jobqueue.hints.listener import Listener


class PollingListener(Listener):
    """Hears nothing; POLL_SECONDS is the latency."""

    kind: ClassVar[str] = "none"
