"""What a client may send, and what becomes of the rest: an answer, then a close, and no crash."""

import json
from typing import Any

import pytest

from jobqueue.live import protocol
from jobqueue.live.protocol import JobsParams, Ping, Refusal, Subscribe, Topic, Unsubscribe
from jobqueue.live.reading import read
from tests.live.conftest import Person

JOB = "01890a5d-ac96-774b-bcce-b302099a8057"


def subscribe(topic: Any = "jobs", **params: Any) -> str:
    return json.dumps({"type": "subscribe", "id": "x", "topic": topic, "params": params})


UNREADABLE = [
    "",
    "nonsense",
    "[]",
    "null",
    '"ping"',
    "NaN",
    "[" * 100_000,
    '{"type": "ping"',
    '{"type": "fly"}',
    '{"type": ["ping"]}',
    '{"type": "ping", "extra": 1}',
    '{"type": "unsubscribe"}',
    '{"type": "unsubscribe", "id": 7}',
    '{"type": "unsubscribe", "id": ""}',
    '{"type": "unsubscribe", "id": "\\ud800"}',
    '{"type": "unsubscribe", "id": "' + "x" * 65 + '"}',
    '{"type": "subscribe", "id": "caf\\u00e9", "topic": "stats"}',
    '{"type": "ping", "\\ud800": 1}',
]
INVALID = [
    subscribe(topic="everything"),
    subscribe(topic=["jobs"]),
    subscribe(topic=None),
    subscribe(topic="stats", filter="x"),
    subscribe(filter=7),
    subscribe(filter="a\x00b"),
    subscribe(filter="\ud800"),
    subscribe(filter="x" * 2_001),
    subscribe(watch=[JOB]),
    subscribe(watch={"7": 1}),
    subscribe(watch={JOB.upper(): 1}),
    subscribe(watch={JOB: -1}),
    subscribe(watch={JOB: True}),
    subscribe(watch={JOB: 1.5}),
    subscribe(watch={JOB: 2**63}),
    subscribe(watch={f"01890a5d-ac96-774b-bcce-{n:012x}": 1 for n in range(201)}),
    subscribe(size=0),
    subscribe(size=201),
    subscribe(size="20"),
    subscribe(topic="job"),
    subscribe(topic="job", job="*"),
    subscribe(topic="job", job=[JOB]),
    '{"type": "subscribe", "id": "x", "topic": "stats", "params": []}',
]


def refusal(text: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(text)
    assert json.dumps(protocol.error(caught.value)).isascii()
    return caught.value


def test_what_is_no_message_is_refused() -> None:
    assert {refusal(text).code for text in UNREADABLE} == {"malformed-message"}


def test_what_a_subscription_cannot_be_is_refused_by_its_id() -> None:
    found = {(refusal(text).code, refusal(text).subscription) for text in INVALID}
    assert found == {("invalid-parameters", "x")}


def test_messages_are_read() -> None:
    assert read('{"type": "ping"}') == Ping()
    assert read('{"type": "unsubscribe", "id": "x"}') == Unsubscribe("x")
    bare = '{"type": "subscribe", "id": "x", "topic": "stats"}'
    assert read(bare) == Subscribe("x", Topic.STATS, None)
    assert read(subscribe()) == Subscribe("x", Topic.JOBS, JobsParams("", {}, None))


def test_bad_messages_are_answered_until_there_are_too_many(watcher: Person) -> None:
    socket = watcher.enter()
    for text in (UNREADABLE[1], INVALID[0], UNREADABLE[5]):
        socket.send(text)
        assert socket.next()["type"] == "error"
    socket.subscribe("s", "stats")
    assert socket.event("s")["counts"]
    for _ in range(protocol.MAX_MALFORMED):
        socket.send("nonsense")
    assert socket.close_code() == protocol.Close.MALFORMED


def test_a_large_message_is_not_read(watcher: Person) -> None:
    for text in ("x" * (protocol.MAX_MESSAGE_BYTES + 1), "é" * protocol.MAX_MESSAGE_BYTES):
        socket = watcher.enter()
        socket.send(text)
        assert socket.close_code() == protocol.Close.TOO_LARGE


def test_too_many_messages_close_it(watcher: Person) -> None:
    socket = watcher.enter()
    for _ in range(protocol.MAX_MESSAGES + 1):
        socket.send({"type": "ping"})
    assert socket.close_code() == protocol.Close.TOO_MANY


def test_a_connection_has_so_many_subscriptions(watcher: Person) -> None:
    socket = watcher.enter()
    for n in range(protocol.MAX_SUBSCRIPTIONS):
        socket.subscribe(f"s{n}", "stats")
    socket.subscribe("one more", "stats")
    assert socket.refusal() == "too-many-subscriptions"


def test_other_addresses_are_refused(watcher: Person) -> None:
    from tests.live.conftest import Socket

    headers = {"host": "testserver", "origin": "http://testserver", "cookie": watcher.cookie}
    for path in ("/", "/jobqueue/", "/jobqueue/ws/more", "/other/ws/"):
        assert not Socket(watcher._loop, headers, path).connect()
