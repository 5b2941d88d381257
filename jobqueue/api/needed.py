"""What a method of a view needs: the data, that `@needs` puts there and others read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobqueue.permissions import PERMISSION_OF

SIGNED_IN = "signed in"
"""Any caller with credentials. What they see or change is narrowed by the view."""
OPEN = "open"
"""Anybody, without credentials: only probes that tell nothing."""

METHODS = ("get", "post", "put", "patch", "delete", "head")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a method of a view needs and takes; see `needs`."""

    action: str
    query: type[Any] | None = None
    body: type[Any] | None = None
    scope: str = "read"
    problems: Sequence[str] = ()

    @property
    def permission(self) -> str | None:
        """The permission of Django's, None where signing in is enough."""
        return PERMISSION_OF.get(self.action)


def needs_of(view: Any, method: str) -> Needs | None:
    """Return what `method` (any case) of a view or its class needs, None if it has none such."""
    name = method.lower()
    handler = getattr(view, name, None) if name in METHODS else None
    if handler is None and name == "head":
        handler = getattr(view, "get", None)
    return getattr(handler, "needs", None)
