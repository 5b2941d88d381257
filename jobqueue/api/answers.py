"""Answers that clients may keep: with an ETag, and 304 for whoever has the same already.

`conditional` gives a document the ETag of its content, or one that the caller has of the resource;
`require_match` refuses (412) what was meant for another version of it, by If-Match.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpResponse
from django.utils.http import parse_etags, quote_etag
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from jobqueue.api.problems import FieldError, Problem

IF_MATCH, IF_NONE_MATCH = "If-Match", "If-None-Match"


def conditional(
    request: Request, document: Any, *, etag: str = "", status: int = 200
) -> HttpResponse:
    """Return `document` as an answer with an ETag; 304 if the client has it."""
    body = JSONRenderer().render(document)
    etag = etag or digest(body)
    if status == 200 and _has(request, etag):
        response = HttpResponse(status=304)
        del response["Content-Type"]
    else:
        response = HttpResponse(body, status=status, content_type="application/json")
    response["ETag"] = etag
    return response


def digest(body: bytes) -> str:
    """Return an ETag of content."""
    return quote_etag(hashlib.blake2b(body, digest_size=12).hexdigest())


def if_match(request: Request) -> list[str] | None:
    """Return the ETags of If-Match; None without the header. Raise Problem if it has none."""
    given = request.headers.get(IF_MATCH)
    if given is None:
        return None
    etags = parse_etags(given)
    if not etags:
        raise Problem(
            "invalid-header", errors=[FieldError('has no ETag, such as "7-a1b2"', header=IF_MATCH)]
        )
    return etags


def versioned(version: int, document: Any) -> str:
    """Return an ETag of a row's version, and of all else that is told of it.

    The rest (what the caller may see, progress, a next tick) makes no change conditional.
    """
    rest = digest(JSONRenderer().render(document)).strip('"')
    return f'"{version}-{rest}"'


def require_match(request: Request, version: int) -> bool:
    """Return whether the client named a version by If-Match. Raise Problem if it is not this."""
    etags = if_match(request)
    if etags is None or etags == ["*"]:
        return False
    if str(version) not in {etag.strip('"').partition("-")[0] for etag in etags}:
        raise Problem("precondition-failed")
    return True


def _has(request: Request, etag: str) -> bool:
    etags = parse_etags(request.headers.get(IF_NONE_MATCH, ""))
    return etags == ["*"] or etag in {one.removeprefix("W/") for one in etags}
