"""Limits as the claim reads them: seeded from code, changed by operators.

A row's key is the name of a limit, one key of it (``customer:42``, only an operator's), or
``queue:NAME``. The claim takes the numbers of the very key, else those of its name.
"""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobqueue.limits import MAX_KEY_LENGTH


class Limit(models.Model):
    """The numbers of one limit: those that hold, and those that the code says."""

    key = models.CharField(primary_key=True, max_length=MAX_KEY_LENGTH)
    running = models.IntegerField(null=True, help_text="At most so many at once; NULL: any.")
    rate = models.IntegerField(null=True, help_text="At most so many starts in `per`.")
    per = models.FloatField(null=True, help_text="Seconds.")
    code_running = models.IntegerField(null=True)
    code_rate = models.IntegerField(null=True)
    code_per = models.FloatField(null=True)
    source = models.CharField(
        max_length=255, default="", blank=True, help_text="Task or TASKS alias that says so."
    )
    set_by = models.CharField(
        max_length=255, default="", blank=True, help_text="Operator whose numbers hold."
    )
    set_at = models.DateTimeField(null=True)
    set_reason = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        verbose_name = _("limit")
        verbose_name_plural = _("limits")
        constraints = (
            models.CheckConstraint(
                name="jobqueue_limit_numbers",
                condition=(Q(running__isnull=True) | Q(running__gte=0))
                & (
                    Q(rate__isnull=True, per__isnull=True)
                    | Q(rate__gte=1, per__isnull=False, per__gt=0)
                ),
            ),
        )

    def __str__(self) -> str:
        return self.key


class LimitUse(models.Model):
    """How many jobs of a key with a rate started in one part of its period."""

    key = models.CharField(max_length=MAX_KEY_LENGTH)
    part = models.BigIntegerField(help_text="Begin of the part, µs.")
    used = models.IntegerField()
    last_at = models.DateTimeField(help_text="Of the newest start: all count until it is too old.")

    class Meta:
        constraints = (
            models.UniqueConstraint(name="jobqueue_limituse_part", fields=["key", "part"]),
        )

    def __str__(self) -> str:
        return f"{self.key}: {self.used}"
