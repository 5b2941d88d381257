"""Who asks: what they may do, which jobs are theirs, and as whom they act.

A job's `created_by` is `Caller.owner`, see `jobqueue.permissions.owner_name`. It comes from the
request's credentials, never from its body.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from jobqueue import permissions
from jobqueue.control import Actor

CLIENT, PAGE = "api", "page"
"""Surfaces: a machine with credentials of its own, and staff in a browser, as on the live page."""


class Caller:
    """The user of a request, whatever class authenticated it; see the module."""

    def __init__(self, user: Any, auth: Any = None, by_session: bool = False):
        self.user = user
        self.auth = auth
        self.by_session = by_session

    @property
    def is_signed_in(self) -> bool:
        """Whether the request has brought credentials that were accepted."""
        return bool(
            self.user is not None
            and self.user.is_authenticated
            and getattr(self.user, "is_active", True)
            and self.user.pk is not None
        )

    @cached_property
    def name(self) -> str:
        """The name that operators see."""
        return (
            str(self.user.get_username()).replace("\x00", "")[: permissions.MAX_USER_NAME_LENGTH]
            or "unnamed"
        )

    @property
    def surface(self) -> str:
        """Where the caller acts from. It decides which tasks are offered."""
        return PAGE if self.by_session and getattr(self.user, "is_staff", False) else CLIENT

    @cached_property
    def actor(self) -> Actor:
        """As whom `jobqueue.control` acts."""
        return Actor(self.name, self.surface)

    @cached_property
    def owner(self) -> str:
        """What `created_by` of the caller's own jobs says."""
        return permissions.owner_name(self.user)

    def may(self, action: str) -> bool:
        """Return whether the caller may do `action` of `jobqueue.permissions`."""
        return self.is_signed_in and permissions.may(self.user, action)

    @cached_property
    def sees_all(self) -> bool:
        """Whether all jobs are shown to the caller, and not only their own."""
        return self.may(permissions.VIEW)

    @cached_property
    def sees_payload(self) -> bool:
        """Whether arguments, results and tracebacks are shown to the caller."""
        return self.may(permissions.VIEW_PAYLOAD)

    def own[T: QuerySet[Any]](self, jobs: T) -> T:
        """Return those of `jobs` that the caller may know of."""
        return jobs if self.sees_all else jobs.filter(created_by=self.owner)
