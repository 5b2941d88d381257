"""Reading a body: one JSON object in UTF-8, within its limits, and nothing that JSON is not.

Refused with a pointer where there is one: a repeated key, NaN and Infinity, numbers beyond a
float's range, NUL characters and lone surrogates, depth beyond MAX_DEPTH.
"""

from __future__ import annotations

import json
import math
from typing import Any

from django.http import HttpRequest
from rest_framework.parsers import BaseParser

from jobqueue.api.problems import FieldError, Problem, pointer
from jobqueue.surfaces import api_options

MEDIA_TYPE = "application/json"


class StrictJSONParser(BaseParser):
    """REST framework's part in `read_json`."""

    media_type = MEDIA_TYPE

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        """Return the object in `stream`."""
        options = api_options()
        raw = stream.read(options.max_body_bytes + 1)
        if len(raw) > options.max_body_bytes:
            raise Problem("body-too-large", limit=options.max_body_bytes)
        return read_json(raw, options.max_depth)


def check_headers(request: HttpRequest, *, takes_body: bool) -> None:
    """Raise Problem for a body that need not even be read: its length, its type, its encoding."""
    limit = api_options().max_body_bytes
    length = _content_length(request)
    if length is None:
        return
    if not takes_body:
        raise Problem("malformed-body", "Nothing is taken here: send no body.")
    if length > limit:
        raise Problem("body-too-large", f"The body may take {limit:,} bytes.", limit=limit)
    charset = request.content_params.get("charset", "utf-8") if request.content_params else "utf-8"
    if request.content_type != MEDIA_TYPE or charset.lower() not in ("utf-8", "utf8"):
        raise Problem("unsupported-media-type", headers={"Accept": MEDIA_TYPE})


def _content_length(request: HttpRequest) -> int | None:
    """Return how long the body is, None if there is none."""
    if request.META.get("HTTP_TRANSFER_ENCODING"):
        raise Problem("length-required")
    given = request.META.get("CONTENT_LENGTH") or "0"
    if not (given.isascii() and given.isdigit()):
        raise Problem("malformed-request", "Content-Length is no number.")
    return int(given[:20]) or None


def read_json(raw: bytes, max_depth: int) -> dict[str, Any]:
    """Return the object that `raw` is. Raise Problem, with the place, if it is none."""
    try:
        text = raw.decode("utf-8")
        document = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_float,
            parse_constant=_no_constant,
        )
    except UnicodeDecodeError:
        raise Problem("malformed-body", "The body is not UTF-8.") from None
    except RecursionError:
        raise _too_deep(max_depth) from None
    except ValueError as error:  # also of integers with thousands of digits
        raise Problem("malformed-body", f"The body is not JSON: {error}.") from None
    if not isinstance(document, dict):
        raise Problem("malformed-body", 'The body must be a JSON object, such as {"task": "…"}.')
    _check(document, max_depth)
    return document


def _too_deep(max_depth: int) -> Problem:
    return Problem("malformed-body", f"The body nests more than {max_depth} levels deep.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Problem("malformed-body", f"The body gives the key {twice[:80]!r} twice.")
    return found


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _check(document: dict[str, Any], max_depth: int) -> None:
    """Raise Problem for depth, and for text that cannot be stored. Without recursion."""
    level: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    for _ in range(max_depth):
        deeper: list[tuple[tuple[str | int, ...], Any]] = []
        for path, value in level:
            if isinstance(value, str):
                _check_text(value, path)
            elif isinstance(value, dict):
                for key, item in value.items():
                    _check_text(key, path)
                    if isinstance(item, str | dict | list):
                        deeper.append(((*path, key), item))
            elif isinstance(value, list):
                deeper += [
                    ((*path, i), item)
                    for i, item in enumerate(value)
                    if isinstance(item, str | dict | list)
                ]
        if not deeper:
            return
        level = deeper
    if any(isinstance(value, dict | list) for _, value in level):
        raise _too_deep(max_depth)
    for path, value in level:
        _check_text(value, path)


def _check_text(text: str, path: tuple[str | int, ...]) -> None:
    if "\x00" in text:
        why = "holds a NUL character, which a database cannot store"
    elif not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
        why = "holds a lone surrogate, which is not Unicode text"
    else:
        return
    raise Problem("malformed-body", errors=[FieldError(why, pointer=pointer(*path))])
