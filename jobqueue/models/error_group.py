"""An error group: all failures that are alike but for numbers, ids and quoted text."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.conf import MAX_QUEUE_NAME_LENGTH, MAX_TASK_NAME_LENGTH


class ErrorGroup(models.Model):
    """One kind of failure: its class, its message without what differs, when, and how often.

    Its course over time is in the rollups of kind "error" by this fingerprint.
    """

    fingerprint = models.CharField(primary_key=True, max_length=32)
    error_class = models.CharField(max_length=255)
    message = models.TextField(help_text="Without what differs from one to the next.")
    count = models.BigIntegerField(default=0, help_text="Attempts that ended with it.")
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    job_id = models.UUIDField(help_text="The newest job that it happened to.")
    task = models.CharField(max_length=MAX_TASK_NAME_LENGTH, help_text="Of that job.")
    queue = models.CharField(max_length=MAX_QUEUE_NAME_LENGTH, help_text="Of that job.")

    class Meta:
        verbose_name = _("error")
        verbose_name_plural = _("errors")
        indexes = (models.Index(name="jobqueue_error_last_seen", fields=["last_seen"]),)

    def __str__(self) -> str:
        return f"{self.error_class} {self.fingerprint}"  # its message is not everybody's to read
