"""A log line: what one run of a job logged, numbered within the run.

Of a run that logs more than is kept (option LOG_LINES) the first and the last lines stay; the gap
is seen in the numbers.
"""

from django.db import models


class LogLine(models.Model):
    """One record that the code of a job logged."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.UUIDField()
    fence = models.BigIntegerField(help_text="Of the run that logged it.")
    number = models.IntegerField(help_text="1…n within the run.")
    logged_at = models.DateTimeField()
    level = models.SmallIntegerField(help_text="As in logging: 20 is INFO.")
    logger = models.CharField(max_length=255)
    message = models.TextField(help_text="With the traceback, if there is one.")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                name="jobqueue_logline_of_run", fields=["job_id", "fence", "number"]
            ),
        )

    def __str__(self) -> str:
        return f"line {self.number} of {self.job_id}"
