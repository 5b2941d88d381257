"""That site under uvicorn: HTTP, and the WebSocket of the live page."""

from django.core.asgi import get_asgi_application

http = get_asgi_application()

from channels.routing import ProtocolTypeRouter  # noqa: E402 - only once Django is set up

from jobqueue.live.routing import websocket  # noqa: E402

application = ProtocolTypeRouter({"http": http, "websocket": websocket})
