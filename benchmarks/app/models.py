"""What a job of the benchmarks writes."""

from django.db import models


class Row(models.Model):
    """One small row, as the effect of one job."""

    number = models.BigIntegerField()
    who = models.TextField()

    def __str__(self) -> str:
        return f"{self.who} {self.number}"
