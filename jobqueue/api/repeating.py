"""Requests that make jobs, and may be repeated: the headers that say so, and the answer once made.

A client sends a key of its own with a request, and the same key when it repeats it: the answer is
the first one, byte for byte (`jobqueue.engine.idempotency`). Who must send one is the option
IDEMPOTENCY_KEY of the API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework.renderers import JSONRenderer

from jobqueue import control
from jobqueue.api.problems import FieldError, Problem
from jobqueue.api.views import ApiView

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
KEY_PROBLEMS = (
    "invalid-idempotency-key",
    "idempotency-key-required",
    "idempotency-key-reused",
    "idempotency-key-in-progress",
    "row-locked",
)
"""What such a request may be answered because of its key."""

KEY = OpenApiParameter(
    KEY_HEADER,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="1 to 255 printable ASCII characters, new for each new request and the same when "
    "it is repeated: a repeat gets the first answer, byte for byte, for 24 hours. Tokens must "
    "send one, unless the project says otherwise.",
    examples=[OpenApiExample("a UUID", "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed")],
)
REPLAYED = OpenApiParameter(
    REPLAYED_HEADER,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description='"true" where this answer was made for an earlier request with the same key.',
    response=[200, 201],
)


def request_key(view: ApiView, route: str, meaning: Mapping[str, Any]) -> control.RequestKey | None:
    """Return the request by its key, None if it has none and needs none. Raise Problem.

    meaning: what is asked for; the same key for something else is refused.
    """
    given = view.request.headers.get(KEY_HEADER)
    if given is None:
        if _needs_key(view):
            raise Problem(
                "idempotency-key-required",
                errors=[FieldError("is missing", header=KEY_HEADER)],
            )
        return None
    return control.request_key(f"user:{view.caller.user.pk}", route, given, meaning)


def stored_answer(
    status: int, document: Any, headers: Mapping[str, str] | None = None
) -> control.StoredAnswer:
    """Return an answer as it is kept with the key."""
    return control.StoredAnswer(status, dict(headers or {}), JSONRenderer().render(document))


def response_of(given: control.Given) -> HttpResponse:
    """Return the answer that was made, now or for an earlier request, which it says."""
    response = HttpResponse(
        given.answer.body,
        status=given.answer.status,
        content_type="application/json",
        headers=dict(given.answer.headers),
    )
    if given.is_replay:
        response[REPLAYED_HEADER] = "true"
    return response


def _needs_key(view: ApiView) -> bool:
    rule = view.options.idempotency_key
    return rule == "always" or (rule == "tokens" and not view.caller.by_session)
