"""The audit: every accepted order has each effect exactly once, and every job has ended.

It reads the effects themselves, in tables without a unique constraint and in the ledger of the
outside world, and takes no word of the queue for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from project.demo.facts import FINISHED, Evidence


@dataclass(frozen=True, slots=True)
class Violation:
    """kind: lost, duplicate, stray, refused, dead, unfinished, zombie, chaos or engine."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def audit(evidence: Evidence) -> list[Violation]:
    """Return everything that is not as promised; an empty list is the proof."""
    return [
        *refused_orders(evidence),
        *lost_orders(evidence),
        *unended_jobs(evidence),
        *wrong_effects(evidence),
    ]


def refused_orders(evidence: Evidence) -> Iterator[Violation]:
    """Yield the orders that the web server did not take, which nobody attacked."""
    for text in evidence.refused:
        yield Violation("refused", text)


def lost_orders(evidence: Evidence) -> Iterator[Violation]:
    """Yield the orders that were accepted over HTTP and are not in the database."""
    for order_id in sorted(evidence.accepted - evidence.orders):
        yield Violation("lost", f"order {order_id} was accepted and is not in the database")


def unended_jobs(evidence: Evidence) -> Iterator[Violation]:
    """Yield the jobs that have not succeeded: those still under way, and the dead."""
    for job in evidence.jobs:
        if job.state not in FINISHED:
            yield Violation("unfinished", f"{job.task} {job.id} is still {job.state}")
        elif job.state != "succeeded":
            yield Violation("dead", f"{job.task} {job.id} is {job.state}: {job.error}")


def wrong_effects(evidence: Evidence) -> Iterator[Violation]:
    """Yield the effects that an order has never, or more than once, or that no order asked for."""
    for effect, counts in evidence.effects.items():
        for order_id in sorted(evidence.orders | counts.keys()):
            count = counts[order_id]
            if order_id not in evidence.orders:
                yield Violation("stray", f"{effect} for order {order_id}, which does not exist")
            elif count == 0:
                yield Violation("lost", f"{effect} of order {order_id} never happened")
            elif count > 1:
                yield Violation("duplicate", f"{effect} of order {order_id} happened {count} times")


def duplicates(evidence: Evidence, effect: str) -> int:
    """Return how many times too often `effect` happened, over all orders."""
    return sum(count - 1 for count in evidence.effects[effect].values() if count > 1)


def missing(evidence: Evidence) -> int:
    """Return how many accepted orders or effects of orders never came to be."""
    return sum(violation.kind == "lost" for violation in audit(evidence))
