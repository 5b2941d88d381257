"""A tag on a job, such as ``order:42``: finds the jobs of any object of the host project."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class JobTag(models.Model):
    """One tag of one job."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.UUIDField()
    tag = models.CharField(max_length=100)

    class Meta:
        verbose_name = _("tag")
        verbose_name_plural = _("tags")
        constraints = (
            models.UniqueConstraint(name="jobqueue_tag_job_tag", fields=["job_id", "tag"]),
        )
        indexes = (models.Index(name="jobqueue_tag_by_tag", fields=["tag", "job_id"]),)

    def __str__(self) -> str:
        return self.tag
