"""Who is connected to this process, by session and by user: for limits, and for farewells.

Connections come and go in the event loop; a logout is served in another thread, hence the lock.
Sessions are known by a hash, which is also what a channel layer carries of them.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from typing import Protocol

from jobqueue.live.doors import Viewer
from jobqueue.surfaces import live_options


class Member(Protocol):
    """A connection, as far as the crowd knows it."""

    viewer: Viewer

    def dismiss(self) -> None:
        """End, because its session was logged out; from any thread."""


class Crowd:
    """The connections of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: set[Member] = set()
        self._by_user: defaultdict[str, int] = defaultdict(int)

    def __len__(self) -> int:
        return len(self._members)

    def admit(self, member: Member) -> bool:
        """Let a connection in, if there is room for it and for its user."""
        options = live_options()
        user = member.viewer.user_key
        with self._lock:
            if len(self._members) >= options.max_connections:
                return False
            if self._by_user[user] >= options.max_per_user:
                return False
            self._members.add(member)
            self._by_user[user] += 1
        return True

    def leave(self, member: Member) -> None:
        """Forget a connection that was let in."""
        user = member.viewer.user_key
        with self._lock:
            if member not in self._members:
                return
            self._members.discard(member)
            self._by_user[user] -= 1
            if not self._by_user[user]:
                del self._by_user[user]

    def dismiss(self, session_hash: str) -> None:
        """End all connections of a session; from any thread."""
        with self._lock:
            found = [m for m in self._members if hash_of(m.viewer.session) == session_hash]
        for member in found:
            member.dismiss()


def hash_of(session_key: str) -> str:
    """Return what stands for a session where its key has no business."""
    return hashlib.sha256(f"jobqueue.live:{session_key}".encode()).hexdigest()


crowd = Crowd()
"""Of this process."""
