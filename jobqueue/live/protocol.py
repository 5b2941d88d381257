"""The messages of the WebSocket, as data: kinds, topics, limits, close codes, problems. Pure.

Every frame is text: one JSON object with a ``type``. docs/reference/websocket.md tells the same to
whoever writes a client, and a test compares the two.

A frame is a hint, HTTP is the truth: what is sent of a job are its id, state and version. A client
that has a newer version than an event says ignores the event; one that has missed something, or is
told to ``resync``, asks the API again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

VERSION = 1
"""Of this protocol; it grows when a client could misunderstand what it did not before."""

MAX_MESSAGE_BYTES = 32 * 1024
"""Of a frame from a client: two hundred watched jobs take a third of it."""
MAX_SUBSCRIPTIONS = 8
"""Of one connection: a page shows less at a time."""
MAX_WATCHED = 200
"""Jobs that one subscription watches by id: more rows than a page of the API has."""
MAX_CHANGES = 200
"""In one event; where more has changed, asking the API again is cheaper than telling."""
MAX_ID_LENGTH = 64
"""Of the id that a client gives a subscription."""
MAX_FILTER_LENGTH = 2_000
MAX_MESSAGES = 60
"""In `MESSAGES_SECONDS`, from one connection: a person makes a tenth of that."""
MESSAGES_SECONDS = 10.0
MAX_MALFORMED = 20
"""Frames that cannot be read, in all: a client that sends more is broken or attacks."""
FRAMES_PER_SECOND = 4
"""Most events a second of one subscription: more than an eye follows, and a browser paints."""


class Topic(StrEnum):
    """What can be subscribed to."""

    STATS = "stats"
    QUEUES = "queues"
    WORKERS = "workers"
    JOBS = "jobs"
    JOB = "job"


class Close(IntEnum):
    """Why the server ends a connection; those from 4000 on are ours."""

    MALFORMED = 4400
    LOGGED_OUT = 4401
    FORBIDDEN = 4403
    TOO_SLOW = 4408
    TOO_LARGE = 4413
    TOO_MANY = 4429
    FAILED = 4500


CLOSE_MEANING: Mapping[Close, str] = {
    Close.MALFORMED: "too many messages that could not be read: the client is broken",
    Close.LOGGED_OUT: "the session has ended, or its user is no longer active: log in again",
    Close.FORBIDDEN: "the user is no longer staff",
    Close.TOO_SLOW: "nothing could be sent for a minute: connect again, and ask the API first",
    Close.TOO_LARGE: "a message was larger than the limit",
    Close.TOO_MANY: "too many messages, or too many connections: poll, and try again later",
    Close.FAILED: "an error of the server, which its log has: connect again, with back-off",
}


class Resync(StrEnum):
    """Why a client should ask the API again."""

    MANY_CHANGES = "many-changes"
    INTERRUPTED = "interrupted"
    PERMISSIONS = "permissions"


RESYNC_MEANING: Mapping[Resync, str] = {
    Resync.MANY_CHANGES: f"more than {MAX_CHANGES} changes since the last event",
    Resync.INTERRUPTED: "the database could not be asked for a while, or the client did not read",
    Resync.PERMISSIONS: "the permissions of the user have changed, and `hello` has said to what",
}


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    """What is wrong with a message; `subscription` is the id that it is about, if it has one."""

    code: str
    detail: str
    subscription: str | None = None
    permission: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the problem, in the form of the API's (RFC 9457)."""
        title, _ = PROBLEMS[self.code]
        document = {
            "type": f"urn:jobqueue:problem:{self.code}",
            "title": title,
            "detail": self.detail,
            "code": self.code,
        }
        return document | ({"permission": self.permission} if self.permission else {})


PROBLEMS: Mapping[str, tuple[str, str]] = {
    "malformed-message": ("Malformed message", "It is no JSON object with a known `type`."),
    "invalid-parameters": ("Invalid parameters", "A member is missing, unknown or out of range."),
    "invalid-filter": ("Invalid filter", "The filter cannot be read; the detail says where."),
    "permission-denied": ("Permission denied", "It needs the `permission` that is named."),
    "job-not-found": ("No such job", "It is not among those that the user may see."),
    "too-many-subscriptions": (
        "Too many subscriptions",
        f"A connection has {MAX_SUBSCRIPTIONS} at most: unsubscribe from one first.",
    ),
    "unavailable": ("Unavailable", "It could not be looked up: poll the API meanwhile."),
}
"""Codes of problems, with their title and what they mean."""


# --- what clients send ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobsParams:
    """Of the topic jobs. watch: versions by id. size: rows on the first page, None: not on it."""

    filter: str
    watch: Mapping[UUID, int]
    size: int | None


@dataclass(frozen=True, slots=True)
class JobParams:
    """Of the topic job."""

    job: UUID


Params = JobsParams | JobParams | None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Begin a subscription, or replace the one with this id."""

    id: str
    topic: Topic
    params: Params


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """End a subscription; one that is not there is no error."""

    id: str


@dataclass(frozen=True, slots=True)
class Ping:
    """Ask whether the connection lives."""


Message = Subscribe | Unsubscribe | Ping


# --- what the server sends ------------------------------------------------------------------------


def hello(user: str, permissions: Collection[str], recheck_seconds: float) -> Any:
    """Return the first message of a connection, and the one after a change of permissions."""
    return {
        "type": "hello",
        "version": VERSION,
        "time": _now(),
        "user": user,
        "permissions": sorted(permissions),
        "limits": {
            "subscriptions": MAX_SUBSCRIPTIONS,
            "watched": MAX_WATCHED,
            "changes": MAX_CHANGES,
            "message_bytes": MAX_MESSAGE_BYTES,
            "frames_per_second": FRAMES_PER_SECOND,
            "messages": MAX_MESSAGES,
            "messages_seconds": MESSAGES_SECONDS,
            "recheck_seconds": recheck_seconds,
        },
    }


def event(subscription: str, seq: int, changes: Any) -> Any:
    """Return what has changed since the event before."""
    return {"type": "event", "id": subscription, "seq": seq, "changes": changes}


def resync(subscription: str, seq: int, reason: Resync) -> Any:
    """Return the order to ask the API again; what follows continues from now."""
    return {"type": "resync", "id": subscription, "seq": seq, "reason": reason.value}


def error(refusal: Refusal) -> Any:
    """Return a refusal; the subscription that it names does not exist, or no more."""
    return {"type": "error", "id": refusal.subscription, "problem": refusal.as_dict()}


def pong(lag_seconds: float | None) -> Any:
    """Return the answer to a ping; lag: since the database was last asked, None: nobody asks."""
    lag = None if lag_seconds is None else round(lag_seconds, 3)
    return {"type": "pong", "time": _now(), "lag_seconds": lag}


def text(frame: Any) -> str:
    """Return a frame as it is sent."""
    return json.dumps(frame, separators=(",", ":"))


def _now() -> str:
    return datetime.now(UTC).isoformat()
