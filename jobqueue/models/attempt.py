"""An attempt: one execution of a job, written once it has ended.

The row (job, fence, worker) is also the witness of an unknown COMMIT: it was written in the
transaction that ended the attempt, so its presence says that this transaction committed.
"""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobqueue.conf import MAX_QUEUE_NAME_LENGTH, MAX_TASK_NAME_LENGTH
from jobqueue.models.row_checks import RowChecks
from jobqueue.states import Outcome


class Attempt(models.Model):
    """One execution of a job that has ended."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.UUIDField()
    worker = models.UUIDField()
    fence = models.BigIntegerField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    number = models.IntegerField(help_text="1…n within the job.")
    charged = models.BooleanField(help_text="Used up one of max_attempts.")
    outcome = models.CharField(max_length=16, choices=[(o.value, o.value) for o in Outcome])
    task = models.CharField(max_length=MAX_TASK_NAME_LENGTH)
    queue = models.CharField(max_length=MAX_QUEUE_NAME_LENGTH)
    due_at = models.DateTimeField(
        null=True, help_text="Since when it could have run: until started_at it waited."
    )
    error_class = models.CharField(max_length=255, default="", blank=True)
    error_message = models.TextField(default="", blank=True)
    error_fingerprint = models.CharField(max_length=32, default="", blank=True)
    traceback = models.TextField(default="", blank=True)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = (
            models.UniqueConstraint(name="jobqueue_attempt_job_fence", fields=["job_id", "fence"]),
            models.UniqueConstraint(
                name="jobqueue_attempt_job_number", fields=["job_id", "number"]
            ),
            models.UniqueConstraint(
                name="jobqueue_attempt_one_success",
                fields=["job_id"],
                condition=Q(outcome=Outcome.SUCCEEDED),
            ),
            RowChecks(
                name="jobqueue_attempt_row",
                checks={
                    "jobqueue_attempt_outcome": Q(outcome__in=[o.value for o in Outcome]),
                    "jobqueue_attempt_numbers": Q(number__gte=1, fence__gte=1),
                },
            ),
        )

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.job_id}"
