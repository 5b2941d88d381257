"""A request to cancel a running job: a row of its own, as only its worker writes about a run.

It stands until the job has ended, over retries and releases: such a job is cancelled instead of
run again. Requeueing a job withdraws it.
"""

from django.db import models


class CancelRequest(models.Model):
    """One job that somebody wants cancelled; who it was is in its action."""

    job_id = models.UUIDField(primary_key=True, editable=False)
    requested_at = models.DateTimeField()
    reason = models.CharField(max_length=64, help_text="Becomes the reason of the job's end.")

    def __str__(self) -> str:
        return f"request to cancel {self.job_id}"
