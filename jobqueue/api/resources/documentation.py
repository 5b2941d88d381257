"""``/openapi.json``, and ``/docs/``: the document for programs, and for people.

The page is Swagger UI from the wheel drf-spectacular-sidecar, served as static files of the
project: nothing comes from elsewhere, and its content security policy lets nothing else in. It
works with the session of whoever is signed in.
"""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.apps import apps
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.templatetags.static import static
from django.urls import path, reverse
from django.utils.html import format_html
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from jobqueue.api import document
from jobqueue.api.access import SIGNED_IN, needs
from jobqueue.api.problems import Problem
from jobqueue.api.views import ApiView

SIDECAR = "drf_spectacular_sidecar"
SWAGGER = f"{SIDECAR}/swagger-ui-dist"

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>jobqueue API</title>
<link rel="stylesheet" href="{css}">
<link rel="icon" href="{icon}">
</head>
<body>
<main id="docs" data-document="{document}" data-csrf="{csrf}"><p>This page needs JavaScript. The
document itself: <a href="{document}">openapi.json</a></p></main>
<script src="{bundle}"></script>
<script src="{start}"></script>
</body>
</html>
"""


class OpenAPIView(ApiView):
    """The document."""

    @extend_schema(
        responses={200: {"type": "object", "required": ["openapi", "paths"]}},
        examples=[OpenApiExample("shortened", value={"openapi": "3.1.0", "paths": {}})],
    )
    @needs(SIGNED_IN)
    def get(self, request: Request) -> Response:
        """Get this document.

        It is OpenAPI 3.1, with the address at which this project serves the API.
        """
        return Response(document.served(request))


class HTMLRenderer(BaseRenderer):
    """Pages are made by the view itself."""

    media_type = "text/html"
    format = "html"
    charset = "utf-8"


class DocsView(ApiView):
    """The page."""

    renderer_classes: ClassVar[tuple[type[BaseRenderer], ...]] = (HTMLRenderer,)

    @needs(SIGNED_IN)
    def get(self, request: Request) -> HttpResponse:
        """Show the document as a page on which it can be tried."""
        if not apps.is_installed(SIDECAR):
            raise Problem("not-found", f'The page needs "{SIDECAR}" in INSTALLED_APPS.')
        page = format_html(
            PAGE,
            css=static(f"{SWAGGER}/swagger-ui.css"),
            icon=static(f"{SWAGGER}/favicon-32x32.png"),
            bundle=static(f"{SWAGGER}/swagger-ui-bundle.js"),
            start=static("jobqueue/api-docs.js"),
            document=reverse("jobqueue_api:openapi"),
            csrf=get_token(request._request),
        )
        response = HttpResponse(page)
        response["Content-Security-Policy"] = _policy()
        response["Referrer-Policy"] = "same-origin"
        return response


def _policy() -> str:
    """Return what the page may load: its own files, wherever static files are."""
    parts = urlsplit(static("jobqueue/api-docs.js"))
    files = f"'self' {parts.scheme}://{parts.netloc}" if parts.netloc else "'self'"
    rules: dict[str, Any] = {
        "default-src": "'none'",
        "script-src": files,
        "style-src": files,
        "img-src": f"{files} data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


routes = [
    path("openapi.json", OpenAPIView.as_view(), name="openapi"),
]
pages = [
    path("docs/", DocsView.as_view(), name="docs"),
]
"""For people, and not in the document."""
