"""Raises ImproperlyConfigured, with what to do, where jobqueue is used without being installed.

Imported before the models, whose own error would name whichever of them comes first. It cannot be
a system check: those of the backend need the backend, and that needs the models.
"""

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

if apps.apps_ready and not apps.is_installed("jobqueue"):
    raise ImproperlyConfigured(
        'jobqueue is used (by TASKS, or an import), and "jobqueue" is not in INSTALLED_APPS. Add '
        'it, before "channels" if that is there, and run manage.py migrate.'
    )
