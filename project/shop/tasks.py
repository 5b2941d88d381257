"""The three jobs of an order, one for each way of getting an effect done once; and others.

- `reserve_stock` writes to the database that holds the job: exactly once, with no further care.
- `charge_card` calls a gateway, and writes what it answered together with the job's completion.
- `send_receipt` calls a provider that keeps no record with us: once, because it honours keys.

`book_delivery` is offered over the HTTP API, to the systems of suppliers.
"""

import os

from django.db.models import Sum

from jobqueue import GiveUp, task
from jobqueue.retry import Backoff
from project.shop import faults, mail, payments
from project.shop.catalog import ARTICLES
from project.shop.checkpoints import Checkpoint, linger
from project.shop.models import Charge, Delivery, Order, StockMovement
from project.shop.reports import report_sales

__all__ = ["book_delivery", "charge_card", "report_sales", "reserve_stock", "send_receipt"]

RETRY = Backoff(base=0.5, factor=2, cap=30)
"""Somebody waits for the order: try again soon, and not for hours."""
MAX_ATTEMPTS = 25


@task(queue_name="stock", max_attempts=MAX_ATTEMPTS, retry=RETRY, timeout=120, takes_context=True)
def reserve_stock(context, order_id: int) -> dict[str, int]:
    """Take the goods from the shelf: one row, committed with the job or not at all."""
    order = Order.objects.get(pk=order_id)
    StockMovement.objects.create(
        order=order, job_id=context.job_id, sku=order.sku, quantity=-order.quantity
    )
    if order.marked:
        linger(
            Checkpoint(
                pid=os.getpid(),
                job_id=str(context.job_id),
                order_id=order_id,
                fence=context.fence,
            )
        )
    else:
        faults.work_a_little()
    return {"reserved": order.quantity}


@task(
    queue_name="payments",
    max_attempts=MAX_ATTEMPTS,
    retry=RETRY,
    timeout=30,
    takes_context=True,
    atomic=False,  # no transaction stays open while the gateway thinks
)
def charge_card(context, order_id: int) -> None:
    """Charge the card. The step keeps the receipt, so that a retry need not ask again."""
    order = Order.objects.get(pk=order_id)
    key = context.idempotency_key
    receipt = context.step("charge", payments.charge, order_id, order.amount_cents, key)
    faults.work_a_little()
    with context.atomic():
        Charge.objects.create(
            order=order, job_id=context.job_id, receipt=receipt, amount_cents=order.amount_cents
        )
        context.commit({"receipt": receipt})


@task(
    queue_name="mail",
    max_attempts=MAX_ATTEMPTS,
    retry=RETRY,
    timeout=30,
    takes_context=True,
    atomic=False,
)
def send_receipt(context, order_id: int) -> dict[str, str]:
    """Mail the receipt. It may be handed over twice; the key lets the provider send one."""
    order = Order.objects.get(pk=order_id)
    message = mail.send_receipt(order_id, order.email, context.idempotency_key)
    faults.work_a_little()
    return {"message": message}


@task(
    queue_name="stock",
    max_attempts=MAX_ATTEMPTS,
    retry=RETRY,
    timeout=30,
    takes_context=True,
    expose={"api", "staff"},
)
def book_delivery(context, sku: str, quantity: int) -> dict[str, int]:
    """Put goods that a supplier has announced on the shelf: one row, however often they say so."""
    if sku not in ARTICLES:
        raise GiveUp(f"The shop has no article {sku!r}.")
    Delivery.objects.create(job_id=context.job_id, sku=sku, quantity=quantity)
    faults.work_a_little()
    total = Delivery.objects.filter(sku=sku).aggregate(pieces=Sum("quantity"))["pieces"]
    return {"delivered": quantity, "total": total}
