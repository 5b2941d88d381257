"""The orders of the incident, as the shop has them: each with the three jobs that it made."""

from __future__ import annotations

from project.pictures import story
from project.pictures.course import Course
from project.pictures.lives import sku_of
from project.shop.catalog import ARTICLES
from project.shop.models import Order

JOBS = {story.STOCK: "stock_job", story.CHARGE: "charge_job", story.MAIL: "receipt_job"}


def write(course: Course) -> list[int]:
    """Write the orders; return their keys, the oldest first."""
    orders = Order.objects.bulk_create(
        Order(
            sku=sku_of(number),
            quantity=1,
            amount_cents=ARTICLES[sku_of(number)].price_cents,
        )
        for number in range(len(course.orders))
    )
    for order, at in zip(orders, course.orders, strict=True):
        order.created_at = at
        order.email = f"customer{order.pk}@example.com"
    for life in course.lives:
        if life.order is not None:
            setattr(orders[life.order], JOBS[life.task], life.id)
    Order.objects.bulk_update(orders, ["created_at", "email", *JOBS.values()], batch_size=200)
    return [order.pk for order in orders]
