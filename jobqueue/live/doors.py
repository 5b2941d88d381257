"""Who may come in over a WebSocket, and may stay: a session, an origin, a staff user.

Decided as Django would decide about a request with the same headers: host and scheme as the
project's settings say (ALLOWED_HOSTS, proxies), the origin as the CSRF middleware compares it, the
user by Django's own ``get_user`` with the session's hash, so that a new password ends it. Nothing
is written: not even a session that is found to be void.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.utils.http import is_same_domain

from jobqueue import permissions

Scope = Mapping[str, Any]


class Refused(Exception):
    """Does not get in; the message is for the log."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: as of the last look at their session.

    owner: what `created_by` says of the jobs that they have made.
    """

    session: str = field(repr=False)  # whoever has it is that user
    user_key: str
    name: str
    owner: str
    is_staff: bool
    allowed: frozenset[str]

    def may(self, action: str) -> bool:
        """Return whether they may do `action` of `jobqueue.permissions`."""
        return action in self.allowed


def enter(scope: Scope) -> Viewer:
    """Return who asks to come in. Raise Refused for whoever may not."""
    request = _request(scope)
    check_origin(request)
    viewer = identify(request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))
    if viewer is None:
        raise Refused("no session of an active user")
    if not viewer.is_staff:
        raise Refused("the user is not staff")
    return viewer


def check_origin(request: HttpRequest) -> None:
    """Raise Refused unless the request says that a page of this site sends it."""
    try:
        host = request.get_host()
    except DisallowedHost:
        raise Refused("the host is not in ALLOWED_HOSTS") from None
    origin = request.META.get("HTTP_ORIGIN", "")
    if origin == f"{'https' if request.is_secure() else 'http'}://{host}":
        return
    if not any(_is_trusted(origin, trusted) for trusted in settings.CSRF_TRUSTED_ORIGINS):
        raise Refused("the origin is foreign, or missing")


def identify(session_key: str) -> Viewer | None:
    """Return the active user whose session that is, None if there is none."""
    stored = _stored_session(session_key)
    if not stored:
        return None
    request = HttpRequest()
    request.session = _Reading(stored)  # type: ignore[assignment]
    user: Any = get_user(request)
    if not user.is_authenticated or not user.is_active or user.pk is None:
        return None
    return Viewer(
        session=session_key,
        user_key=str(user.pk),
        name=str(user.get_username()),
        owner=permissions.owner_name(user),
        is_staff=bool(getattr(user, "is_staff", False)),
        allowed=permissions.allowed(user),
    )


class _Reading(dict[str, Any]):
    """A session to look into: what Django would write to it stays here.

    With a fallback of SECRET_KEY it would get a new key, which no cookie could tell the browser.
    """

    def flush(self) -> None:
        """Forget it."""
        self.clear()

    def cycle_key(self) -> None:
        """Leave it as it is."""


def _stored_session(key: str) -> dict[str, Any]:
    if not key:
        return {}
    store = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return dict(store.items())


def _request(scope: Scope) -> ASGIRequest:
    """Return the handshake as the request that it is."""
    secure = scope.get("scheme") in ("wss", "https")
    as_http = {**scope, "type": "http", "method": "GET", "scheme": "https" if secure else "http"}
    return ASGIRequest(as_http, BytesIO())


def _is_trusted(origin: str, trusted: str) -> bool:
    scheme, separator, host = origin.partition("://")
    trusted_scheme, _, trusted_host = trusted.partition("://")
    if not separator or scheme != trusted_scheme:
        return False
    return is_same_domain(host, trusted_host.removeprefix("*"))
