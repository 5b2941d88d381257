"""Progress: how far one run of a job said that it had come. A row of its own, not the job's."""

from django.db import models


class Progress(models.Model):
    """The last progress of one run; a later run of the same job has a greater fence."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.UUIDField()
    fence = models.BigIntegerField(help_text="Of the run that reported it.")
    done = models.FloatField()
    total = models.FloatField(null=True, help_text="NULL: not known.")
    message = models.CharField(max_length=255, default="", blank=True)
    reported_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(name="jobqueue_progress_job_fence", fields=["job_id", "fence"]),
        )

    def __str__(self) -> str:
        return f"progress of {self.job_id}"
