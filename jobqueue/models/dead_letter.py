"""Dead letters: the same rows as jobs, by a name of their own in the admin."""

from django.utils.translation import gettext_lazy as _

from jobqueue.models.job import Job


class DeadLetter(Job):
    """A job in `dead`: out of attempts, given up, or poison."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
