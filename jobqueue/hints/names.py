"""Names of hints: short, of bounded length, and apart from those of other projects."""

import hashlib
import os
from collections.abc import Iterable

from django.db import connections

MAX_NAME_BYTES = 64
"""Longer queue names are hashed: a hint has a constant size, and no limit of a server matters."""


def hint_name(queue: str) -> str:
    """Return what stands for a queue in keys and messages: its name, or the name's hash."""
    encoded = queue.encode("utf-8", "surrogatepass")
    if len(encoded) <= MAX_NAME_BYTES:
        return queue
    return f"sha256:{hashlib.sha256(encoded).hexdigest()[:48]}"


def queues_by_hint_name(queues: Iterable[str]) -> dict[str, str]:
    """Return the queues by what stands for them."""
    return {hint_name(queue): queue for queue in queues}


def namespace(database: str) -> str:
    """Return a short name for the database behind an alias, so that projects do not meet.

    Only the database's own name counts, not its host: enqueuers may reach it through a pooler.
    """
    settings = connections[database].settings_dict
    name = settings["NAME"] or settings["OPTIONS"].get("service") or ""
    if connections[database].vendor == "sqlite":
        name = os.path.abspath(name)
    return hashlib.sha256(str(name).encode()).hexdigest()[:12]
