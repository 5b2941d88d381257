"""A tick: one instant of a schedule, and what was made of it. History: no rule reads it.

That a tick gets one job follows from `Schedule.last_tick`, not from these rows: pruning them, or
the jobs, changes nothing.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from jobqueue.models.schedule import Schedule

TICK_OUTCOMES = ("enqueued", "overlap", "missed", "crowded", "twin")
"""A job was made; none, because an earlier one had not ended; none, because it came too late;
none, because too many wait already; none, because a job with its unique key does."""


class Tick(models.Model):
    """One instant of a schedule that has come."""

    objects: ClassVar[models.Manager[Tick]] = models.Manager()
    schedule_id: int  # type checkers do not see it otherwise

    id = models.BigAutoField(primary_key=True)
    schedule = models.ForeignKey(Schedule, models.CASCADE, db_index=False, db_constraint=False)
    tick = models.DateTimeField()
    at = models.DateTimeField(help_text="When a scheduler settled it.")
    outcome = models.CharField(max_length=16, choices=[(o, o) for o in TICK_OUTCOMES])
    job_id = models.UUIDField(null=True)
    missed = models.IntegerField(
        default=0, help_text="Ticks before it that got no job because they came too late."
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(name="jobqueue_tick_once", fields=["schedule", "tick"]),
            models.CheckConstraint(
                name="jobqueue_tick_outcome",
                condition=Q(outcome="enqueued", job_id__isnull=False)
                | (Q(outcome__in=TICK_OUTCOMES[1:]) & Q(job_id__isnull=True)),
            ),
        )

    def __str__(self) -> str:
        return f"{self.tick} of {self.schedule}"
