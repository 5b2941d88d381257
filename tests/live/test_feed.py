"""The feed: it asks only while somebody looks, and neither bursts nor sleepers make it grow."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from jobqueue.events import Event, subscribe
from jobqueue.live import farewells, protocol, subscriptions, topics
from jobqueue.live.crowd import hash_of
from jobqueue.live.feed import FRAMES_PER_SECOND
from jobqueue.live.routing import websocket
from jobqueue.models import Job
from jobqueue.storage import Storage
from tests.live.conftest import HERE, PATH, PATIENCE_SECONDS, Person
from tests.storage.making import insert
from tests.waiting import wait_until


def is_asking() -> bool:
    return any(thread.name.startswith("jobqueue-live_") for thread in threading.enumerate())


def test_it_asks_only_while_somebody_looks(watcher: Person) -> None:
    wait_until(lambda: not is_asking())
    socket = watcher.enter()
    socket.send({"type": "ping"})
    assert socket.next()["lag_seconds"] is None
    assert not is_asking()
    socket.subscribe("s", "stats")
    socket.event("s")
    assert is_asking()
    socket.send({"type": "ping"})
    assert socket.until("pong")["lag_seconds"] < PATIENCE_SECONDS
    socket.leave()
    wait_until(lambda: not is_asking())


def test_many_viewers_share_one_session(watcher: Person, storage: Storage) -> None:
    sockets = [watcher.enter() for _ in range(5)]
    for socket in sockets:
        socket.subscribe("s", "stats")
        socket.event("s")
    threads = [t for t in threading.enumerate() if t.name.startswith("jobqueue-live_")]
    assert len(threads) == 1
    insert(storage, 2)
    for socket in sockets:
        assert socket.event("s")["counts"]["ready"]["value"] == 2


def test_a_burst_is_told_in_few_frames_the_last_of_which_is_the_truth(
    watcher: Person, storage: Storage, loop: asyncio.AbstractEventLoop
) -> None:
    (job,) = insert(storage)
    socket = watcher.enter()
    began = loop.time()
    socket.subscribe("j", "jobs", watch={str(job): 1})
    seen = 0
    for version in range(2, 302):
        Job.objects.filter(id=job).update(version=version)
    while seen < 301:
        (change,) = socket.event("j") or [{"version": 1}]
        seen = change["version"]
    frames = [frame for frame in socket.frames if frame["type"] == "event"]
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    assert len(frames) <= (loop.time() - began) * FRAMES_PER_SECOND + 1


class Frozen:
    """A client that stops reading when told to: sending to it waits."""

    def __init__(self, person: Person) -> None:
        headers = {"host": "testserver", "origin": HERE, "cookie": person.cookie}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.scope = {"type": "websocket", "path": PATH, "query_string": b"", "headers": raw}
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self.reads = asyncio.Event()
        self.reads.set()
        self.sending = 0
        self.frames: list[dict[str, Any]] = []

    async def send(self, message: dict[str, Any]) -> None:
        self.sending += 1
        await self.reads.wait()
        if message["type"] == "websocket.send":
            self.frames.append(json.loads(message["text"]))
        self.sending -= 1


@pytest.fixture
def frozen(watcher: Person, loop: asyncio.AbstractEventLoop) -> Iterator[Frozen]:
    """A viewer of everything, who does not read any more."""

    def do(call: Callable[..., Any], *args: Any) -> None:
        loop.call_soon_threadsafe(call, *args)

    async def make() -> Frozen:
        return Frozen(watcher)

    found = asyncio.run_coroutine_threadsafe(make(), loop).result(10)
    served = asyncio.run_coroutine_threadsafe(
        websocket(found.scope, found.inbox.get, found.send), loop
    )
    do(found.inbox.put_nowait, {"type": "websocket.connect"})
    for topic in ("stats", "queues", "workers"):
        message = json.dumps({"type": "subscribe", "id": topic, "topic": topic})
        do(found.inbox.put_nowait, {"type": "websocket.receive", "text": message})
    wait_until(lambda: len(found.frames) == 4)
    do(found.reads.clear)
    yield found
    do(found.reads.set)
    do(found.inbox.put_nowait, {"type": "websocket.disconnect", "code": 1000})
    served.result(10)


def test_a_frozen_viewer_holds_up_nobody_and_is_told_the_truth_when_it_reads(
    frozen: Frozen, watcher: Person, storage: Storage, loop: asyncio.AbstractEventLoop
) -> None:
    other = watcher.enter()
    other.subscribe("s", "stats")
    for count in range(1, 6):
        insert(storage)
        while other.event("s")["counts"]["ready"]["value"] != count:
            pass
    assert frozen.sending == 1  # one frame waits to be sent, and nothing behind it
    assert len(frozen.frames) == 4
    loop.call_soon_threadsafe(frozen.reads.set)
    wait_until(lambda: _ready(frozen) == 5)
    assert len([frame for frame in frozen.frames if frame.get("id") == "stats"]) <= 3


def _ready(frozen: Frozen) -> int:
    counts = [f["changes"]["counts"] for f in frozen.frames if "counts" in f.get("changes", ())]
    return int(counts[-1]["ready"]["value"])


def test_who_asks_and_does_not_read_the_answers_is_not_read(
    frozen: Frozen, loop: asyncio.AbstractEventLoop
) -> None:
    for _ in range(protocol.MAX_MESSAGES - 10):
        ping = {"type": "websocket.receive", "text": '{"type": "ping"}'}
        loop.call_soon_threadsafe(frozen.inbox.put_nowait, ping)
    left = protocol.MAX_MESSAGES - 10 - 32
    wait_until(lambda: frozen.sending > 0 and 0 < frozen.inbox.qsize() < left)
    assert frozen.sending == 1


@pytest.mark.postgres_only("an SQLite file does not go away")
def test_it_comes_back_when_the_database_does(watcher: Person, storage: Storage) -> None:
    socket = watcher.enter()
    socket.subscribe("s", "stats")
    socket.event("s")
    events: list[Event] = []
    stop = subscribe(events.append)
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            assert cursor.fetchone()[0] >= 1
        insert(storage)
        assert socket.event("s")["counts"]["ready"]["value"] == 1
    finally:
        stop()
    assert [e.name for e in events] == ["live.failing", "live.recovered"]


class Broken(topics.PageSource):
    """A page that makes the database raise an error."""

    def look(self, watch: Any, question: Any) -> Any:
        Job.objects.raw("SELECT id, no_such_column FROM jobqueue_job")[0]


def test_what_cannot_be_looked_at_harms_nobody_else(
    watcher: Person, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = watcher.enter()
    healthy.subscribe("s", "stats")
    healthy.event("s")
    monkeypatch.setattr(subscriptions, "PageSource", Broken)
    socket = watcher.enter()
    socket.subscribe("j", "jobs", size=10)
    assert socket.refusal() == "unavailable"
    insert(storage)
    assert healthy.event("s")["counts"]["ready"]["value"] == 1


# --- a channel layer ------------------------------------------------------------------------------

IN_MEMORY = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
FAULTY = {"default": {"BACKEND": "tests.live.faulty.FaultyLayer"}}


def test_a_logout_in_another_process_is_heard_over_the_channel_layer(
    watcher: Person, settings: Any, loop: asyncio.AbstractEventLoop
) -> None:
    from channels.layers import get_channel_layer

    settings.CHANNEL_LAYERS = IN_MEMORY
    socket = watcher.enter()
    layer = get_channel_layer()
    wait_until(lambda: farewells.GROUP in layer.groups)
    session = hash_of(watcher.browser.cookies["sessionid"].value)
    message = {"type": "live.farewell", "session": session}
    asyncio.run_coroutine_threadsafe(layer.group_send(farewells.GROUP, message), loop).result(10)
    assert socket.close_code() == protocol.Close.LOGGED_OUT


def test_a_layer_that_is_away_costs_nobody_anything(
    watcher: Person, settings: Any, storage: Storage
) -> None:
    settings.CHANNEL_LAYERS = FAULTY
    socket = watcher.enter()
    socket.subscribe("s", "stats")
    socket.event("s")
    insert(storage)
    assert socket.event("s")["counts"]["ready"]["value"] == 1
    watcher.browser.logout()
    assert socket.close_code() == protocol.Close.LOGGED_OUT
