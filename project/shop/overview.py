"""The last orders with what has become of their jobs, for the shop's page."""

from collections.abc import Sequence
from dataclasses import dataclass

from jobqueue.models import Job
from project.shop.models import Order

RECENT_ORDERS = 20


@dataclass(frozen=True, slots=True)
class JobState:
    """One job of an order: what it does, and its state, or "gone" once it has been pruned."""

    purpose: str
    state: str


@dataclass(frozen=True, slots=True)
class OrderLine:
    order: Order
    jobs: Sequence[JobState]


def recent_orders(limit: int = RECENT_ORDERS) -> list[OrderLine]:
    """Return the newest orders, newest first. Two queries, however many there are."""
    orders = list(Order.objects.order_by("-pk")[:limit])
    ids = [job_id for order in orders for job_id in order.job_ids.values()]
    states = dict(Job.objects.filter(pk__in=ids).values_list("pk", "state"))
    return [OrderLine(order, _job_states(order, states)) for order in orders]


def _job_states(order: Order, states: dict[object, str]) -> list[JobState]:
    return [
        JobState(purpose, states.get(job_id, "gone")) for purpose, job_id in order.job_ids.items()
    ]
