"""The OpenAPI 3.1 document: made from the views, committed, and served as it was committed.

`made` is what the code says now; `python -m docs.generate` writes it to ``openapi.json`` beside
this module, and a test compares the two. `served` is the committed one with what this project
has decided: the address of the API, and whose credentials it takes.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings

import jobqueue
from jobqueue.api.problem_types import PROBLEMS
from jobqueue.api.problems import TYPE_PREFIX
from jobqueue.api.schema import name_routes
from jobqueue.api.security import default_schemes, with_schemes
from jobqueue.surfaces import api_options

FILE = Path(__file__).with_name("openapi.json")
DEFAULT_PREFIX = "/jobqueue/api/v1"

DESCRIPTION = """\
Jobs of a Django project: enqueue them, follow them, and operate what runs them.

**Bodies** are one JSON object in UTF-8. Unknown fields and parameters are refused. **Errors** are
problem details (RFC 9457) with a `code` that stays the same, and a `detail` that says what to do.
**Retries** are safe: what enqueues takes an `Idempotency-Key`, and repeating an operation on a job
changes nothing more. An answer with a 2xx status comes after the commit.

Without the permission to view jobs a caller sees those they have enqueued themselves; what a caller
may not see is 404. Arguments, results and tracebacks need a permission of their own.
"""

SETTINGS = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "jobqueue",
    "DESCRIPTION": DESCRIPTION,
    "VERSION": jobqueue.__version__,
    "COMPONENT_SPLIT_REQUEST": True,
    "COMPONENT_SPLIT_PATCH": False,
    "SCHEMA_PATH_PREFIX": "",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": [],
    "PREPROCESSING_HOOKS": [],
    "SERVERS": [{"url": DEFAULT_PREFIX}],
    "SECURITY": [],
}

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Problem details (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "What happened, and what to do about it."},
        "code": {"type": "string", "enum": sorted(PROBLEMS)},
        "instance": {"type": "string", "format": "uri", "description": "The server's log has it."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["detail"],
                "properties": {
                    "detail": {"type": "string"},
                    "pointer": {"type": "string", "description": "Into the body (RFC 6901)."},
                    "parameter": {"type": "string", "description": "In the query string."},
                    "header": {"type": "string"},
                },
            },
        },
        "permission": {"type": "string", "description": "What the caller lacks."},
        "current_state": {"type": "string", "description": "Of the job, where it is in the way."},
        "allowed_actions": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer", "description": "What may not be exceeded."},
        "position": {"type": "integer", "description": "In a filter, from 0."},
    },
}

HEADERS: dict[str, tuple[str, Any]] = {
    "RateLimit": ('Requests left, and seconds until there are more: `"read";r=99;t=12`.', "string"),
    "RateLimit-Policy": ('The limit and its window in seconds: `"read";q=100;w=60`.', "string"),
    "Retry-After": ("Seconds after which the same may be sent again.", "integer"),
    "WWW-Authenticate": ("What credentials to send.", "string"),
    "Allow": ("The methods that are allowed.", "string"),
}


def made() -> dict[str, Any]:
    """Return the document that the views make."""
    from jobqueue.api import urls

    name_routes(urls.documented)
    with patched_settings(SETTINGS):
        document: dict[str, Any] = SchemaGenerator(patterns=urls.documented).get_schema(public=True)
    components = document.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
    components["examples"] = {code: _example(code) for code in sorted(PROBLEMS)}
    components["headers"] = {
        name: {"description": text, "schema": {"type": kind}}
        for name, (text, kind) in HEADERS.items()
    }
    components["securitySchemes"] = default_schemes()
    return document


def as_text(document: dict[str, Any]) -> str:
    """Return the document as it is committed."""
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


@cache
def committed() -> dict[str, Any]:
    """Return the document as it was committed."""
    document: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return document


def served(request: HttpRequest) -> dict[str, Any]:
    """Return the document with the address of this project, and the credentials that it takes."""
    root = reverse("jobqueue_api:openapi").removesuffix("/openapi.json")
    return {**with_schemes(committed(), api_options()), "servers": [{"url": root}]}


def _example(code: str) -> dict[str, Any]:
    kind = PROBLEMS[code]
    return {
        "summary": kind.title,
        "value": {
            "type": f"{TYPE_PREFIX}{code}",
            "title": kind.title,
            "status": kind.status,
            "detail": kind.meaning,
            "code": code,
        },
    }
