"""The shop that the documentation's snippets import: models, and an outside world."""

from django.db import models


class Order(models.Model):
    email = models.EmailField()
    total_cents = models.IntegerField(default=2490)

    class Meta:
        app_label = "docs_shop"

    def __str__(self) -> str:
        return f"order of {self.email}"


class Charge(models.Model):
    order = models.ForeignKey(Order, models.CASCADE)
    receipt = models.TextField()

    class Meta:
        app_label = "docs_shop"

    def __str__(self) -> str:
        return self.receipt


class StockMovement(models.Model):
    order = models.ForeignKey(Order, models.CASCADE)
    quantity = models.IntegerField()

    class Meta:
        app_label = "docs_shop"

    def __str__(self) -> str:
        return str(self.quantity)


class Report(models.Model):
    year = models.IntegerField()
    text = models.TextField()

    class Meta:
        app_label = "docs_shop"

    def __str__(self) -> str:
        return str(self.year)


class Price(models.Model):
    sku = models.TextField()
    cents = models.IntegerField()

    class Meta:
        app_label = "docs_shop"

    def __str__(self) -> str:
        return self.sku


MODELS = [Order, Charge, StockMovement, Report, Price]

keys: list[str] = []
"""The keys that the gateway was called with."""


def charge(order_id: int, cents: int, *, key: str) -> str:
    """Charge at the gateway."""
    keys.append(key)
    return f"receipt {order_id} {cents}"


answers: list[str] = []
"""What the warehouse says next, the last first."""


def push(sku: str) -> str:
    """Tell the warehouse."""
    return answers.pop()
