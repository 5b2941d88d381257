"""Taking an order: its row and its jobs, in one transaction."""

from django.db import transaction

from project.shop import tasks
from project.shop.catalog import ARTICLES
from project.shop.models import Order


def place_order(*, sku: str, quantity: int, email: str, marked: bool = False) -> Order:
    """Return the committed order; the order and its three jobs stand and fall together."""
    with transaction.atomic():
        order = Order.objects.create(
            sku=sku,
            quantity=quantity,
            email=email,
            amount_cents=quantity * ARTICLES[sku].price_cents,
            marked=marked,
        )
        order.stock_job = tasks.reserve_stock.enqueue(order.pk).id
        order.charge_job = tasks.charge_card.enqueue(order.pk).id
        order.receipt_job = tasks.send_receipt.enqueue(order.pk).id
        order.save(update_fields=["stock_job", "charge_job", "receipt_job"])
    return order
