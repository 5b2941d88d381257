"""Problem details (RFC 9457): every error of the API is one of these, with a code and a way out.

    raise Problem("idempotency-key-reused", "The key came with another body before.")
    raise Problem("invalid-fields", errors=[FieldError("is unknown", pointer="/kwargs/to")])

The answer is ``application/problem+json`` with `type`, `title`, `status`, `detail`, `code`, and
what the kind of problem adds: `errors` (each with a `detail` and a `pointer` into the body, or the
name of a `parameter` or `header`), `current_state` and `allowed_actions`, `permission`, `limit`.
An unexpected exception is logged with its traceback and is a 500 that tells nothing but an
`instance`, which the log has too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.http import JsonResponse

from jobqueue.api.problem_types import PROBLEMS, ProblemType

CONTENT_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:jobqueue:problem:"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with a request: what, and where (one of the three)."""

    detail: str
    pointer: str | None = None
    parameter: str | None = None
    header: str | None = None

    def as_dict(self) -> dict[str, str]:
        """Return what is said of it."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Problem(Exception):
    """An answer that is an error; `members` are what its kind adds. See the module."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ):
        self.kind: ProblemType = PROBLEMS[code]
        self.detail = detail or _sentence(errors) or self.kind.meaning
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.members = members
        super().__init__(self.detail)

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.kind.status

    def as_dict(self) -> dict[str, Any]:
        """Return the document."""
        document: dict[str, Any] = {
            "type": f"{TYPE_PREFIX}{self.kind.code}",
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
            "code": self.kind.code,
            **self.members,
        }
        if self.errors:
            document["errors"] = [error.as_dict() for error in self.errors]
        return document

    def response(self) -> JsonResponse:
        """Return the answer."""
        response = JsonResponse(
            self.as_dict(),
            status=self.status,
            content_type=CONTENT_TYPE,
            json_dumps_params={"ensure_ascii": False, "separators": (",", ":")},
        )
        response["Cache-Control"] = "no-store"
        if self.status >= 500:
            response._has_been_logged = True  # type: ignore[attr-defined] # with its traceback
        for name, value in self.headers.items():
            response[name] = value
        return response


def _sentence(errors: Sequence[FieldError]) -> str:
    """Return the first of `errors` as a sentence."""
    if not errors:
        return ""
    first = errors[0]
    place = first.pointer or first.parameter or first.header or ""
    rest = f" And {len(errors) - 1} more." if len(errors) > 1 else ""
    if first.header and first.detail[:1].islower():
        return f"The header {first.header} {first.detail}{rest}"
    return f"{place}: {first.detail}{rest}" if place else f"{first.detail}{rest}"


def pointer(*path: str | int) -> str:
    """Return a JSON pointer (RFC 6901) for keys and positions from the outermost inwards."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
