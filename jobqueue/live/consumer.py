"""The consumer of the WebSocket, for a URLRouter of channels.

Whoever may not come in is refused before the connection is accepted. It uses no channel layer for
what it shows, so that a layer which is slow, full or away takes nothing from anybody; see
`jobqueue.live.farewells` for what it is used for.
"""

from __future__ import annotations

import logging
from typing import Any

from channels.consumer import AsyncConsumer

from jobqueue.events import emit, line_of
from jobqueue.live import farewells
from jobqueue.live.connection import Connection
from jobqueue.live.crowd import crowd
from jobqueue.live.desk import ask_in
from jobqueue.live.doors import Refused
from jobqueue.live.protocol import Close


class LiveConsumer(AsyncConsumer):
    """One WebSocket of the live page."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let the client in, or not, and serve it."""
        if scope["type"] != "websocket" or (await receive())["type"] != "websocket.connect":
            return
        try:
            viewer = await ask_in(scope)
        except Exception as error:
            _refused(scope, error)
            await send({"type": "websocket.close", "code": int(Close.FORBIDDEN)})
            return
        connection = Connection(viewer, receive, send)
        if not crowd.admit(connection):
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.close", "code": int(Close.TOO_MANY)})
            return
        try:
            await send({"type": "websocket.accept"})
            farewells.listen()
            await connection.run()
        finally:
            crowd.leave(connection)
            farewells.rest()


def _refused(scope: Any, error: Exception) -> None:
    """Tell the log who did not get in; an unexpected error is one of the server's."""
    address = (scope.get("client") or ("",))[0]
    if isinstance(error, Refused):
        emit("live.refused", level=logging.INFO, address=address, why=str(error))
        return
    emit("live.refused", level=logging.WARNING, address=address, why=line_of(error))
    logging.getLogger("jobqueue").debug("Nobody can be let in", exc_info=error)


class Nobody(AsyncConsumer):
    """Refuses whatever other address a WebSocket is asked for at."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse."""
        await receive()
        await send({"type": "websocket.close"})
