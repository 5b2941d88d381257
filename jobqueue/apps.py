"""The Django app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class JobQueueConfig(AppConfig):
    """Registers the Tasks framework, whose checks and receivers exist only once it is imported."""

    name = "jobqueue"
    label = "jobqueue"
    verbose_name = _("Job queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobqueue import checks, compat  # noqa: F401
