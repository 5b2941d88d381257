"""Viewers of the live page: WebSockets on an event loop of their own, used from the test's thread.

What they see is committed, so these tests are not in a transaction.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client

from jobqueue.conf import options_for
from jobqueue.live.routing import websocket
from jobqueue.storage import Storage, storage_for

PATH = "/jobqueue/ws/"
HERE = "http://testserver"
PATIENCE_SECONDS = 10.0
"""How long a test waits for what must come."""


class Socket:
    """One WebSocket: `socket.subscribe("s", "stats")`, `socket.event("s")`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, headers: dict[str, str], path: str = PATH):
        self._loop = loop
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._communicator = self._do(self._make(path, raw))
        self.frames: list[dict[str, Any]] = []

    async def _make(self, path: str, headers: Any) -> ApplicationCommunicator:
        scope = {"type": "websocket", "path": path, "query_string": b"", "headers": headers}
        return ApplicationCommunicator(websocket, scope)

    def _do(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def connect(self) -> bool:
        """Ask to come in; return whether it was accepted."""
        self._input({"type": "websocket.connect"})
        answer = self.output()["type"]
        assert answer in ("websocket.accept", "websocket.close")
        return bool(answer == "websocket.accept")

    def send(self, message: Any) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        self._input({"type": "websocket.receive", "text": text})

    def subscribe(self, id: str, topic: str, **params: Any) -> None:
        self.send({"type": "subscribe", "id": id, "topic": topic, "params": params})

    def output(self) -> dict[str, Any]:
        """Return the next ASGI message."""
        return self._do(self._communicator.receive_output(PATIENCE_SECONDS))  # type: ignore[no-any-return]

    def next(self) -> dict[str, Any]:
        """Return the next frame."""
        message = self.output()
        assert message["type"] == "websocket.send", message
        self.frames.append(json.loads(message["text"]))
        return self.frames[-1]

    def until(self, kind: str, id: str | None = None) -> dict[str, Any]:
        """Return the next frame of a kind, about a subscription, passing over others."""
        while True:
            frame = self.next()
            if frame["type"] == kind and (id is None or frame["id"] == id):
                return frame

    def event(self, id: str) -> Any:
        """Return the changes of the next event of a subscription."""
        return self.until("event", id)["changes"]

    def refusal(self) -> str:
        """Return the code of the next error."""
        return str(self.until("error")["problem"]["code"])

    def close_code(self) -> int:
        """Return with which code the server ends it, passing over frames."""
        while True:
            message = self.output()
            if message["type"] == "websocket.close":
                return int(message["code"])

    def leave(self) -> None:
        self._input({"type": "websocket.disconnect", "code": 1000})
        self._do(self._gone())

    def _input(self, message: dict[str, Any]) -> None:
        self._do(self._communicator.send_input(message))

    async def _gone(self) -> None:
        await asyncio.wait([self._communicator.future], timeout=PATIENCE_SECONDS)


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread, as that of a server does."""
    found = asyncio.new_event_loop()
    thread = threading.Thread(target=found.run_forever, daemon=True)
    thread.start()
    yield found
    found.call_soon_threadsafe(found.stop)
    thread.join(10)
    found.close()


class Person:
    """A user with a browser: `person.socket()` has their cookie and this site's origin."""

    def __init__(self, loop: asyncio.AbstractEventLoop, user: Any, sockets: list[Socket]) -> None:
        self.user = user
        self.browser = Client()
        self.browser.force_login(user)
        self._loop = loop
        self._sockets = sockets

    @property
    def cookie(self) -> str:
        return f"sessionid={self.browser.cookies['sessionid'].value}"

    def socket(self, **headers: str | None) -> Socket:
        """Return a WebSocket that has not asked to come in; a header that is None is left out."""
        given = {"host": "testserver", "origin": HERE, "cookie": self.cookie} | headers
        found = Socket(self._loop, {name: v for name, v in given.items() if v is not None})
        self._sockets.append(found)
        return found

    def enter(self) -> Socket:
        """Return a WebSocket that was let in and greeted."""
        socket = self.socket()
        assert socket.connect()
        assert socket.next()["type"] == "hello"
        return socket


@pytest.fixture
def make_person(
    transactional_db: None, loop: asyncio.AbstractEventLoop
) -> Iterator[Callable[..., Person]]:
    """`make_person("kim", "view_job")`: staff with these permissions, logged in."""
    sockets: list[Socket] = []

    def make(name: str = "kim", *permissions: str, **fields: Any) -> Person:
        user = get_user_model().objects.create_user(name, **{"is_staff": True, **fields})
        rows = Permission.objects.filter(
            codename__in=permissions, content_type__app_label="jobqueue"
        )
        assert len(rows) == len(permissions)
        user.user_permissions.set(rows)
        return Person(loop, user, sockets)

    yield make
    for socket in sockets:
        socket.leave()


@pytest.fixture
def watcher(make_person: Callable[..., Person]) -> Person:
    """Somebody who may see all jobs."""
    return make_person("watcher", "view_job")


@pytest.fixture
def storage(transactional_db: None) -> Storage:
    """Storage on the test's connection; what it writes is committed."""
    return storage_for(connection, options_for("default"))
