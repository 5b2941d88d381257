"""The WebSocket, for the project's ``asgi.py``.

    from jobqueue.live.routing import websocket
    application = ProtocolTypeRouter({"http": get_asgi_application(), "websocket": websocket})

Imported after ``get_asgi_application()``, which sets Django up. A project that has WebSockets of
its own adds `websocket_urlpatterns` to its URLRouter instead. They lie where its URLs include
``jobqueue.urls``; without that there are none.
"""

try:
    from channels.routing import URLRouter
except ImportError as error:
    from django.core.exceptions import ImproperlyConfigured

    raise ImproperlyConfigured(
        'The WebSocket of the live page needs channels: install "django-jobqueue[live]", or leave '
        "it out of asgi.py, and the page polls."
    ) from error

from django.urls import NoReverseMatch, get_script_prefix, path, re_path, reverse

from jobqueue.live.consumer import LiveConsumer, Nobody


def _paths() -> list[str]:
    try:
        found = reverse("jobqueue_live:socket")
    except NoReverseMatch:
        return []
    return [found.removeprefix(get_script_prefix())]


websocket_urlpatterns = [path(found, LiveConsumer.as_asgi()) for found in _paths()]
"""For a URLRouter of the project's own."""

websocket = URLRouter([*websocket_urlpatterns, re_path(r"", Nobody.as_asgi())])
"""All that a project needs that has no other WebSockets; other addresses are refused."""
