"""The site under an ASGI server, such as `uvicorn project.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
application = get_asgi_application()

from django.conf import settings  # noqa: E402 - readable only once Django is set up
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler  # noqa: E402

if settings.SERVE_STATIC:
    application = ASGIStaticFilesHandler(application)
