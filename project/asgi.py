"""The site under an ASGI server, such as `uvicorn project.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
http = get_asgi_application()

from channels.routing import ProtocolTypeRouter  # noqa: E402 - only once Django is set up
from django.conf import settings  # noqa: E402
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler  # noqa: E402

from jobqueue.live.routing import websocket  # noqa: E402

if settings.SERVE_STATIC:
    http = ASGIStaticFilesHandler(http)
application = ProtocolTypeRouter({"http": http, "websocket": websocket})
