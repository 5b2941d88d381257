"""A step: a named piece of a job whose recorded result is kept over all its attempts."""

from django.db import models

from jobqueue.models.fields import JSONDocument


class Step(models.Model):
    """The recorded result of one step of one job."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.UUIDField()
    name = models.CharField(max_length=255)
    result = JSONDocument()
    fence = models.BigIntegerField(help_text="Of the attempt that ran it.")
    recorded_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(name="jobqueue_step_job_name", fields=["job_id", "name"]),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.job_id}"
