"""A rollup: what happened in one minute or hour, counted from the attempts that ended in it.

Rows are small and few (one a minute for each task of a queue, worker and kind of error that had
something to count), so whoever draws or sums reads these and never the history. `Rolling` says
how far the counting has come; see `jobqueue.engine.rollups` for how each attempt is counted once.
"""

from django.db import models

from jobqueue.conf import MAX_QUEUE_NAME_LENGTH, MAX_TASK_NAME_LENGTH
from jobqueue.models.fields import JSONDocument


class Rollup(models.Model):
    """The attempts that ended in one minute or hour, of one task in a queue, worker or error."""

    class Kind(models.TextChoices):
        """What `name` names."""

        TASK = "task"
        WORKER = "worker"
        ERROR = "error"

    id = models.BigAutoField(primary_key=True)
    seconds = models.IntegerField(help_text="Its length: 60 or 3600.")
    kind = models.CharField(max_length=8, choices=[(k.value, k.value) for k in Kind])
    at = models.DateTimeField(help_text="Its start, in whole minutes or hours of UTC.")
    queue = models.CharField(max_length=MAX_QUEUE_NAME_LENGTH, default="", blank=True)
    name = models.CharField(
        max_length=MAX_TASK_NAME_LENGTH, help_text="Task, identity of a worker, or fingerprint."
    )
    succeeded = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    timed_out = models.BigIntegerField(default=0)
    lost = models.BigIntegerField(default=0)
    snoozed = models.BigIntegerField(default=0)
    cancelled = models.BigIntegerField(default=0)
    wait_seconds = models.FloatField(default=0.0, help_text="Sum, from due to started.")
    run_seconds = models.FloatField(default=0.0, help_text="Sum, without lost ones.")
    waits = JSONDocument(default=dict, help_text="Histogram of seconds from due to started.")
    runs = JSONDocument(default=dict, help_text="Histogram of seconds that attempts ran.")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                name="jobqueue_rollup_key", fields=["seconds", "kind", "at", "queue", "name"]
            ),
            models.CheckConstraint(
                name="jobqueue_rollup_seconds", condition=models.Q(seconds__in=[60, 3600])
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.name} at {self.at}"


class Rolling(models.Model):
    """How far the rollups have come: one row, held by whoever counts."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    attempt_id = models.BigIntegerField(
        default=0, help_text="Attempts up to here are counted, but for the gaps."
    )
    gaps = JSONDocument(
        default=list, help_text="[first id, last id, Unix time] that were not there yet."
    )
    rolled_at = models.DateTimeField(null=True, help_text="When all there was had been counted.")
    not_before = models.DateTimeField(null=True, help_text="When to count again.")

    class Meta:
        constraints = (
            models.CheckConstraint(name="jobqueue_rolling_one", condition=models.Q(id=1)),
        )

    def __str__(self) -> str:
        return f"counted up to attempt {self.attempt_id}"
