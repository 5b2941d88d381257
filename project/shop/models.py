"""Orders, and the rows that their jobs leave behind.

The effect tables have no unique constraint, on purpose: nothing but the queue's own guarantee
keeps an effect from being there twice, so that counting their rows proves it, or refutes it.
Every effect row carries the id of the job that wrote it.
"""

from django.db import models


class Order(models.Model):
    """One order, and the three jobs that work it off."""

    sku = models.CharField(max_length=32)
    quantity = models.PositiveIntegerField()
    email = models.EmailField()
    amount_cents = models.PositiveIntegerField()
    marked = models.BooleanField(
        default=False,
        help_text="Its stock job reports when it has written and not yet committed, and lingers "
        "there; the demo freezes its worker at that moment.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    stock_job = models.UUIDField(null=True, editable=False)
    charge_job = models.UUIDField(null=True, editable=False)
    receipt_job = models.UUIDField(null=True, editable=False)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"Order {self.pk}"

    @property
    def job_ids(self) -> dict[str, object]:
        """The ids of its jobs by what they do: stock, charge, receipt."""
        return {"stock": self.stock_job, "charge": self.charge_job, "receipt": self.receipt_job}


class StockMovement(models.Model):
    """Goods taken from the shelf for an order: written by an atomic task."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="stock_movements")
    job_id = models.UUIDField()
    sku = models.CharField(max_length=32)
    quantity = models.IntegerField(help_text="Negative: pieces that left the shelf.")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.quantity} × {self.sku} for order {self.order_id}"


class Delivery(models.Model):
    """Goods that a supplier has announced over the HTTP API: written by an atomic task."""

    job_id = models.UUIDField()
    sku = models.CharField(max_length=32)
    quantity = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "deliveries"

    def __str__(self) -> str:
        return f"{self.quantity} × {self.sku}"


class Charge(models.Model):
    """What the gateway charged for an order: written in the transaction that ends its job."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="charges")
    job_id = models.UUIDField()
    receipt = models.CharField(max_length=64, help_text="The gateway's number of the charge.")
    amount_cents = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"Charge {self.receipt} for order {self.order_id}"
