"""One thing that is wrong: the form in which the rules say it. Severities:

error     wrong whatever the load: a probe fails
warning   somebody should look soon
info      explains what one sees
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jobqueue.engine.counts import Count

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong.

    code: stable, for machines. subject: the queue, task, worker, session, bulk operation or error
    (its fingerprint) that it is about; queue: the one that this hits. count, seconds: how many and
    for how long, where that says something.
    """

    code: str
    severity: Severity
    sentence: str
    way_out: str
    subject: str = ""
    queue: str = ""
    count: Count | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.sentence} {self.way_out}".strip()


def stopped(text: str) -> str:
    """Return what somebody else has written as a sentence that another may follow."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
