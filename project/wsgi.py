"""The site under a WSGI server, such as `gunicorn project.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
application = get_wsgi_application()

from django.conf import settings  # noqa: E402 - readable only once Django is set up
from django.contrib.staticfiles.handlers import StaticFilesHandler  # noqa: E402

if settings.SERVE_STATIC:
    application = StaticFilesHandler(application)
