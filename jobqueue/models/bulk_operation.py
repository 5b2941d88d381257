"""A bulk operation: one verb for all jobs that a filter matches, or that a list of ids names.

The row is all there is to it: whoever has a moment carries out the next step and moves `cursor`
on in the same transaction, so a process that dies in the middle leaves it where the last commit
was. See `jobqueue.engine.bulk_steps`.
"""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import JSONDocument


class BulkState(models.TextChoices):
    """Where a bulk operation is in its life."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    FINISHED = "finished"


class BulkOperation(models.Model):
    """One verb for many jobs, carried out in steps."""

    id = models.BigAutoField(primary_key=True)
    backend = models.CharField(max_length=64)
    verb = models.CharField(max_length=32)
    filter = models.TextField(default="", blank=True, help_text="Canonical, its times written out.")
    bindings = JSONDocument(default=dict, help_text="Where arguments stand that it names.")
    ids = JSONDocument(null=True, help_text="Ascending; instead of a filter.")
    parameters = JSONDocument(default=dict)
    actor = models.CharField(max_length=255)
    surface = models.CharField(max_length=16)
    action = models.BigIntegerField(help_text="The Action row that counts what it changes.")

    state = models.CharField(max_length=16, choices=BulkState.choices, default=BulkState.RUNNING)
    began_at = models.DateTimeField(help_text="Jobs count that were in their state by then.")
    stepped_at = models.DateTimeField(help_text="Whose last step is longest ago comes next.")
    ended_at = models.DateTimeField(null=True)
    wait_until = models.DateTimeField(null=True, help_text="No step before then.")

    total = models.BigIntegerField(help_text="Jobs that matched when it began.")
    total_is_capped = models.BooleanField(default=False, help_text="There were more.")
    cursor = models.UUIDField(null=True, help_text="Jobs up to this id have had their turn.")
    seen = models.BigIntegerField(default=0, help_text="Jobs that have had their turn.")
    counts = JSONDocument(default=dict, help_text="How many, by what happened to them.")
    walked = models.BooleanField(default=False, help_text="Only those left are to be tried again.")
    left = JSONDocument(default=list, help_text="Ids whose rows were locked.")
    passes = models.SmallIntegerField(default=0, help_text="Times that those were tried again.")
    paced_from = models.DateTimeField(null=True, help_text="Due time of the first, where spread.")
    failures = models.SmallIntegerField(default=0, help_text="Steps in a row that failed.")
    error = models.TextField(default="", blank=True, help_text="Why the last step failed.")

    class Meta:
        verbose_name = _("bulk operation")
        verbose_name_plural = _("bulk operations")
        constraints = (
            models.CheckConstraint(
                name="jobqueue_bulk_state", condition=Q(state__in=BulkState.values)
            ),
            models.CheckConstraint(
                name="jobqueue_bulk_finished_has_time",
                condition=Q(state=BulkState.FINISHED, ended_at__isnull=False)
                | ~Q(state=BulkState.FINISHED),
            ),
        )
        indexes = (
            models.Index(
                name="jobqueue_bulk_running",
                fields=["stepped_at", "id"],
                condition=Q(state=BulkState.RUNNING),
            ),
        )

    def __str__(self) -> str:
        return f"bulk operation {self.pk}: {self.verb}"  # its filter is not everybody's to read

    @property
    def is_running(self) -> bool:
        return bool(self.state == BulkState.RUNNING)

    @property
    def jobs_left(self) -> int:
        """How many jobs have not had their turn, or are to be tried again; at least, if capped."""
        return max(self.total - self.seen, 0) + len(self.left)

    @property
    def fraction(self) -> float | None:
        """How far it is, from 0 to 1; None where nobody has counted to the end."""
        if self.state == BulkState.FINISHED:
            return 1.0
        if self.total_is_capped:
            return None
        return min(self.seen / self.total, 1.0) if self.total else 0.0
