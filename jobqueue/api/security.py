"""What the OpenAPI document says of credentials: by the classes that the project has configured."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from django.utils.module_loading import import_string
from drf_spectacular.extensions import OpenApiAuthenticationExtension

from jobqueue.surfaces import SESSION, TOKEN, ApiOptions

SCHEMES: dict[str, tuple[str, dict[str, Any]]] = {
    TOKEN: (
        "token",
        {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "A token: `Authorization: Token 0123456789abcdef`.",
        },
    ),
    SESSION: (
        "session",
        {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "A session of Django's. To change something takes `X-CSRFToken`, too.",
        },
    ),
}
"""Name and description of the classes that are configured by default."""


def default_schemes() -> dict[str, Any]:
    """Return the schemes of the committed document."""
    return dict(SCHEMES.values())


def with_schemes(document: dict[str, Any], options: ApiOptions) -> dict[str, Any]:
    """Return the document with the schemes of the configured classes."""
    schemes = dict(_scheme(path) for path in options.authentication)
    if schemes == default_schemes():
        return document
    changed = deepcopy(document)
    changed["components"]["securitySchemes"] = schemes
    wanted: list[dict[str, list[str]]] = [{name: []} for name in schemes]
    for methods in changed["paths"].values():
        for operation in methods.values():
            operation["security"] = [s for s in operation["security"] if not s] + wanted
    return changed


def _scheme(path: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the scheme of a class; of one that nobody has described, its path."""
    if path in SCHEMES:
        return SCHEMES[path]
    name = path.rpartition(".")[2]
    extension = OpenApiAuthenticationExtension.get_match(import_string(path)())
    found = extension.get_security_definition(None) if extension else None  # type: ignore[arg-type]
    if isinstance(found, dict):
        return name, found
    header = {"type": "apiKey", "in": "header", "name": "Authorization"}
    return name, header | {"description": f"As `{path}` takes it."}
