"""An action: what an operator did to a job, queue or worker: who, through which surface, when."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import JSONDocument


class Action(models.Model):
    """One thing an operator did."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    actor = models.CharField(max_length=255)
    surface = models.CharField(max_length=16, help_text="shell, admin, api or page.")
    verb = models.CharField(max_length=32)
    job_id = models.UUIDField(null=True, db_index=True)
    target = models.CharField(max_length=255, default="", blank=True)
    count = models.IntegerField(default=1, help_text="How many it changed.")
    detail = JSONDocument(null=True)

    class Meta:
        verbose_name = _("action")
        verbose_name_plural = _("actions")
        indexes = (models.Index(name="jobqueue_action_at", fields=["at"]),)

    def __str__(self) -> str:
        return f"{self.actor}: {self.verb} {self.target}"
