"""What a run leaves to be judged: plain values, however they were obtained."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from project.demo.refusal import Refusal

FINISHED = ("succeeded", "dead", "cancelled")
"""States in which a job stays."""


@dataclass(frozen=True, slots=True)
class JobFact:
    """One job: its id, its task's name, its state and, if it died, why."""

    id: UUID
    task: str
    state: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class AttemptFact:
    """One attempt that has ended, and the process that ran it (None if its row is gone)."""

    job_id: UUID
    number: int
    outcome: str
    started_at: datetime
    finished_at: datetime
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Kill:
    """What was killed ("child" or "supervisor"), and when by this machine's clock."""

    at: datetime
    what: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Thaw:
    """One worker frozen past its lease and thawed, and what it came to."""

    pid: int
    order_id: int
    frozen_seconds: float
    refusal: Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """effects: for each kind of effect, how often it happened for each order id.

    accepted: orders that the web answered with 201; orders: those in the database.
    refused: what came instead of a 201, one text an order.
    repeated: deliveries that the gateway recognized by their key and did not act on again.
    """

    accepted: frozenset[int]
    refused: Sequence[str]
    orders: frozenset[int]
    effects: Mapping[str, Counter[int]]
    repeated: Counter[str]
    jobs: Sequence[JobFact]
    attempts: Sequence[AttemptFact]
