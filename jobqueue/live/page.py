"""``/jobqueue/``: the view that serves the built page, under any server.

Every address under the prefix that is none of the API or the WebSocket is the same document: the
page's own routes decide. What the page must know stands in ``<meta name="jobqueue-…">``:

base      the prefix, such as /jobqueue/
api       the prefix of the HTTP API
socket    the path of the WebSocket; empty under WSGI, where the page polls
admin     the admin's index; empty where the project has none, or not jobqueue's models in it
login     where to log in again; ``?next=`` brings back
csrf      the token for the header X-CSRFToken
user      who is logged in
zone      the project's time zone

The policy lets nothing be loaded but the site's own static files, and no script or style stand in
the page: the one exception is ``<style>`` with the nonce of ``<meta property="csp-nonce">``.
"""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.csrf import get_token
from django.shortcuts import resolve_url
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_safe

from jobqueue.live.manifest import Assets, NotBuilt, assets

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>jobqueue</title>
<link rel="icon" href="{icon}">
{metas}
<meta property="csp-nonce" nonce="{nonce}" content="{nonce}">
{styles}{preloads}<script type="module" src="{script}"></script>
</head>
<body>
<div id="root"></div>
<noscript><p>This page needs JavaScript. {admin}</p></noscript>
</body>
</html>
"""

PLAIN = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>jobqueue: {title}</title></head>
<body><main><h1>{title}</h1><p>{text}</p><p>{admin}</p></main></body>
</html>
"""


@require_safe
def page(request: HttpRequest) -> HttpResponseBase:
    """Serve the page to active staff; send everybody else to the login, or away."""
    user: Any = request.user
    if not user.is_authenticated:
        return redirect_to_login(request.get_full_path(), login_url())
    if not (user.is_active and user.is_staff):
        text = "This page is for staff. Ask for the permission, or log in as somebody else."
        return _plain("Not allowed", text, status=403)
    try:
        found = assets()
    except NotBuilt as error:
        return _plain("The page has not been built", str(error), status=503)
    nonce = secrets.token_urlsafe(16)
    return _guarded(HttpResponse(_document(request, found, nonce)), _policy(nonce))


@require_safe
def socket_over_http(request: HttpRequest) -> HttpResponse:
    """Say of the WebSocket's address, asked over HTTP, what is there."""
    text = "A WebSocket: it is served under ASGI, and asked with an upgrade."
    response = HttpResponse(text, status=426, content_type="text/plain; charset=utf-8")
    response["Upgrade"] = "websocket"
    return response


def login_url() -> str:
    """Return where staff log in: the admin's login if there is an admin, else LOGIN_URL."""
    return address("admin:login") or resolve_url(settings.LOGIN_URL)


def address(name: str, *args: Any) -> str:
    """Return the address of that name, empty if the project has none."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


def _document(request: HttpRequest, found: Assets, nonce: str) -> str:
    facts = _facts(request).items()
    return format_html(
        PAGE,
        icon=static("jobqueue/icon.svg"),
        metas=format_html_join("\n", '<meta name="jobqueue-{}" content="{}">', facts),
        nonce=nonce,
        styles=_links(found.styles, '<link rel="stylesheet" href="{}">\n'),
        preloads=_links(found.preloads, '<link rel="modulepreload" href="{}">\n'),
        script=static(found.script),
        admin=_admin_link(),
    )


def _links(names: tuple[str, ...], form: str) -> str:
    return format_html_join("", form, ((static(name),) for name in names))


def _facts(request: HttpRequest) -> dict[str, str]:
    base = reverse("jobqueue_live:page")
    is_asgi = isinstance(request, ASGIRequest) and find_spec("channels") is not None
    return {
        "base": base,
        "api": address("jobqueue_api:openapi").removesuffix("openapi.json"),
        "socket": f"{base}ws/" if is_asgi else "",
        "admin": address("admin:app_list", "jobqueue"),
        "login": login_url(),
        "csrf": get_token(request),
        "user": str(request.user.get_username()),
        "zone": settings.TIME_ZONE or "UTC",
    }


def _plain(title: str, text: str, status: int) -> HttpResponse:
    body = format_html(PLAIN, title=title, text=text, admin=_admin_link())
    return _guarded(HttpResponse(body, status=status), "default-src 'none'; frame-ancestors 'none'")


def _admin_link() -> str:
    found = address("admin:app_list", "jobqueue")
    return format_html('<a href="{}">The jobs in the admin</a>', found) if found else ""


def _guarded(response: HttpResponse, policy: str) -> HttpResponse:
    response["Content-Security-Policy"] = policy
    response["Referrer-Policy"] = "same-origin"
    response["X-Content-Type-Options"] = "nosniff"
    response["X-Frame-Options"] = "DENY"
    response["Cache-Control"] = "private, no-store"
    return response


def _policy(nonce: str) -> str:
    """Return what the page may load: its own files, wherever static files are."""
    parts = urlsplit(static("jobqueue/live"))
    files = f"'self' {parts.scheme}://{parts.netloc}" if parts.netloc else "'self'"
    rules = {
        "default-src": "'none'",
        "script-src": files,
        "style-src": f"{files} 'nonce-{nonce}'",
        "img-src": files,
        "font-src": files,
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "object-src": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())
