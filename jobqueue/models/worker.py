"""A worker: one process that claims and runs jobs, or one that watches over them.

Death is a fact in this row, decided by one compare-and-set; a renewal matches only a row that is
not dead. The columns that a beat changes are in no index, so beats stay in the page (HOT).
"""

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import JSONDocument
from jobqueue.states import Blame


class Worker(models.Model):
    """One process: its identity, lease and heartbeat."""

    id = models.UUIDField(primary_key=True, editable=False, help_text="Random identity.")
    kind = models.CharField(max_length=16, help_text="worker: the only kind that has rows so far.")
    name = models.CharField(max_length=255, help_text="A label; may be used again.")
    host = models.CharField(max_length=255)
    pid = models.BigIntegerField()
    supervisor = models.UUIDField(null=True, help_text="Identity of the process that started it.")
    backend = models.CharField(max_length=64)
    version = models.CharField(max_length=64)
    queues = JSONDocument(default=list, help_text="Names; empty: every queue.")
    tasks = JSONDocument(default=list, help_text="Names of the tasks registered in it.")
    slots = models.IntegerField(default=0)
    direct = models.BooleanField(
        default=False, help_text="Its beat session holds an advisory lock that proves death."
    )
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    lease_until = models.DateTimeField()
    clock_ahead = models.FloatField(
        default=0.0, help_text="Seconds that its clock was ahead of the database's at its beat."
    )
    draining = models.BooleanField(default=False)
    dead = models.BooleanField(default=False)
    dead_at = models.DateTimeField(null=True)
    dead_reason = models.CharField(max_length=64, default="", blank=True)
    blame = models.CharField(
        max_length=8,
        choices=[(b.value, b.value) for b in Blame],
        default=Blame.JOBS,
        help_text="Of its death: jobs, nobody, or stopped on purpose; for whoever takes them back.",
    )

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        permissions = (("drain_worker", "Can drain workers"),)
        constraints = (
            models.CheckConstraint(
                name="jobqueue_worker_dead_has_time",
                condition=models.Q(dead=True, dead_at__isnull=False)
                | models.Q(dead=False, dead_at__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.host}:{self.pid})"
