"""What the OpenAPI document says of a method: made from `@needs`, its docstring, `extend_schema`.

From `@needs` come the query parameters, the body, the security, and every problem that the method
may answer, with its example; from the docstring the summary and the description; from
drf-spectacular's `extend_schema` the answers, and examples of the body and of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django.urls import URLPattern
from drf_spectacular.openapi import AutoSchema

from jobqueue.api.needed import OPEN, Needs, needs_of
from jobqueue.api.problem_types import PROBLEMS
from jobqueue.api.problems import CONTENT_TYPE
from jobqueue.api.serializers import StrictSerializer

SECURITY: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]
HEADERS = {401: ("WWW-Authenticate",), 405: ("Allow",), 409: ("Retry-After",),
           429: ("Retry-After",), 503: ("Retry-After",)}  # fmt: skip
"""Headers that problems of a status may bear."""
QUOTA = ("RateLimit", "RateLimit-Policy")


class ApiSchema(AutoSchema):
    """See the module. `names` of the routes, by their address, name the operations."""

    @property
    def needs(self) -> Needs:
        """What the method needs."""
        declared = needs_of(self.view, self.method)
        assert declared is not None
        return declared

    def get_operation_id(self) -> str:
        """Return for example "post_job_cancel": the method and the name of the route."""
        name = getattr(self.view, "route_name", "") or "_".join(self._tokenize_path())
        return f"{self.method.lower()}_{name.replace('-', '_')}"

    def get_tags(self) -> list[str]:
        """Return the resource: the first part of the address."""
        return [self.path.strip("/").split("/")[0].partition(".")[0]]

    def get_summary(self) -> str | None:
        """Return the first sentence of the method's docstring."""
        return self._doc().split("\n\n")[0].replace("\n", " ").rstrip(".") or None

    def get_description(self) -> str:
        """Return the method's docstring, and what it needs."""
        rest = self._doc().partition("\n\n")[2].strip()
        action, permission = self.needs.action, self.needs.permission
        if permission:
            who = f"Needs the permission `{permission}`."
        elif action == OPEN:
            who = "Needs no credentials."
        else:
            who = "Needs credentials, and no permission."
        return f"{rest}\n\n{who}" if rest else who

    def _doc(self) -> str:
        method: Any = getattr(self.view, self.method.lower())
        return inspect.cleandoc(method.__doc__ or "")

    def get_override_parameters(self) -> list[Any]:
        """Return the query's serializer; its fields become parameters."""
        return [] if self.needs.query is None else [self.needs.query]

    def get_request_serializer(self) -> Any:
        """Return the body's serializer."""
        return self.needs.body

    def get_response_serializers(self) -> Any:
        """Return nothing: whoever answers something says so with `extend_schema`."""
        return {}

    def get_auth(self) -> list[dict[str, list[str]]]:
        """Return the alternatives; an empty one means that none is needed."""
        return [{}, *SECURITY] if self.needs.action == OPEN else SECURITY

    def _postprocess_serializer_schema(self, schema: Any, serializer: Any, direction: str) -> Any:
        schema = super()._postprocess_serializer_schema(schema, serializer, direction)
        if isinstance(serializer, StrictSerializer) and not serializer.open_ended:
            schema["additionalProperties"] = False
        return schema

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        responses = super()._get_response_bodies(direction)
        for given, response in responses.items():
            if given < "400":
                response.setdefault("headers", {}).update(headers(QUOTA))
        for status, codes in _by_status(self._codes()):
            answer = problem_answer(status, codes)
            if str(status) in responses:  # such as a probe's own 503
                responses[str(status)]["content"] |= answer["content"]
            else:
                responses[str(status)] = answer
        return dict(sorted(responses.items()))

    def _codes(self) -> Iterator[str]:
        """Yield the codes of all problems that the method may answer."""
        yield from ("malformed-request", "malformed-body", "invalid-parameters")
        if self.needs.body is not None:
            yield from ("invalid-fields", "body-too-large", "unsupported-media-type")
            yield "length-required"
        if self.needs.action != OPEN:
            yield "not-authenticated"
        yield "authentication-failed"
        if self.needs.permission:
            yield "permission-denied"
        if self.method != "GET":
            yield "csrf-failed"
        if "{" in self.path:
            yield "not-found"
        yield from ("not-acceptable", "too-many-requests", "internal-error", "unavailable")
        yield from self.needs.problems


def _by_status(codes: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    unique = sorted(dict.fromkeys(codes), key=lambda code: PROBLEMS[code].status)
    for status, group in groupby(unique, key=lambda code: PROBLEMS[code].status):
        yield status, list(group)


def problem_answer(status: int, codes: list[str]) -> dict[str, Any]:
    """Return the answer of a status that may be any of these problems."""
    answer: dict[str, Any] = {
        "description": "; ".join(f"`{code}`: {PROBLEMS[code].title}" for code in codes),
        "content": {
            CONTENT_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "examples": {
                    code: {"$ref": f"#/components/examples/{code}"} for code in sorted(codes)
                },
            }
        },
    }
    if status in HEADERS:
        answer["headers"] = headers(HEADERS[status])
    return answer


def headers(names: tuple[str, ...]) -> dict[str, Any]:
    """Return references to headers that the document describes once."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def name_routes(patterns: list[URLPattern]) -> None:
    """Tell each view the name of its route, by which its operations are called."""
    for pattern in patterns:
        pattern.callback.cls.route_name = pattern.name  # type: ignore[attr-defined]
