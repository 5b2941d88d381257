"""Who may call a method of a view: said at the method, demanded when the class is made.

class JobView(ApiView):
    @needs(SIGNED_IN)
    def get(self, request, job_id): ...      # narrowed to the caller's own jobs by the view

    @needs("cancel", body=Reason, problems=("wrong-state",))
    def post(self, request, job_id): ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from rest_framework.permissions import BasePermission

from jobqueue.api.needed import METHODS, OPEN, SIGNED_IN, Needs, needs_of
from jobqueue.api.schema import ApiSchema
from jobqueue.permissions import PERMISSION_OF, VIEW
from jobqueue.surfaces import DEFAULT_THROTTLES

__all__ = [
    "METHODS",
    "OPEN",
    "SIGNED_IN",
    "HasPermission",
    "Needs",
    "check_view",
    "needs",
    "needs_of",
]

SCOPES = frozenset(DEFAULT_THROTTLES) - {"anonymous"}


def needs[**P, R](
    action: str,
    *,
    query: type[Any] | None = None,
    body: type[Any] | None = None,
    scope: str = "",
    problems: Sequence[str] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare what a method needs: `action` of `jobqueue.permissions`, SIGNED_IN or OPEN.

    query, body: serializers of what it takes; without one any parameter, or any body, is refused.
    scope: of the throttle; by default "read", "enqueue" or "operate", by the action.
    problems: codes of problems that it may answer beyond those that every method may.
    """
    if action not in (SIGNED_IN, OPEN) and action not in PERMISSION_OF:
        raise ImproperlyConfigured(f"{action!r} is no action of jobqueue.permissions.")
    declared = Needs(action, query, body, scope or _scope(action), tuple(problems))
    if declared.scope not in SCOPES:
        raise ImproperlyConfigured(f"{scope!r} is no scope; known are {', '.join(sorted(SCOPES))}.")

    def mark(method: Callable[P, R]) -> Callable[P, R]:
        method.needs = declared  # type: ignore[attr-defined]
        method.schema = ApiSchema  # type: ignore[attr-defined] # what extend_schema extends
        return method

    return mark


def _scope(action: str) -> str:
    if action in (SIGNED_IN, OPEN, VIEW):
        return "read"
    return "enqueue" if action == "enqueue" else "operate"


def check_view(view: type[Any]) -> None:
    """Raise ImproperlyConfigured for a method of `view` that does not say what it needs."""
    for name in METHODS:
        handler = getattr(view, name, None)
        if handler is not None and not isinstance(getattr(handler, "needs", None), Needs):
            raise ImproperlyConfigured(
                f"{view.__module__}.{view.__qualname__}.{name} does not say who may call it: "
                "decorate it with @needs."
            )


class HasPermission(BasePermission):
    """Allows what the method needs; whoever has no credentials is told to bring them."""

    def has_permission(self, request: Any, view: Any) -> bool:
        """Return whether the caller may."""
        declared = needs_of(view, request.method)
        if declared is None:
            return False
        if declared.action == OPEN:
            return True
        caller = view.caller
        if not caller.is_signed_in:
            return False
        return bool(declared.action == SIGNED_IN or caller.may(declared.action))
