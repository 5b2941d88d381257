"""A queue: a named lane of one database. A row exists only once somebody set something on it."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.conf import MAX_QUEUE_NAME_LENGTH


class Queue(models.Model):
    """A named lane; a paused one is never claimed from."""

    name = models.CharField(primary_key=True, max_length=MAX_QUEUE_NAME_LENGTH)
    paused = models.BooleanField(default=False)
    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=255, default="", blank=True)
    limited = models.BooleanField(default=False, help_text="The limit queue:NAME has numbers.")
    paused_reason = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        permissions = (("pause_queue", "Can pause and resume queues"),)

    def __str__(self) -> str:
        return self.name
