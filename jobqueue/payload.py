"""What travels as JSON: arguments, results and the text of errors. Pure; no database.

Values follow the rules of Django's ``normalize_json`` (tuples become lists, bytes become text,
enums their value) and then those of JSON (keys become text), so that a job sees the same
arguments in an eager test, on SQLite and on PostgreSQL. Anything else is refused where it is
given, with its place and the way out: a wrong type is an `UnsupportedType` (a TypeError), a wrong
value an `InvalidArgument` (a ValueError).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobqueue.conf import MAX_MESSAGE_BYTES, MAX_PAYLOAD_DEPTH
from jobqueue.exceptions import InvalidArgument, PayloadTooLarge, UnsupportedType

MAX_INTEGER_DIGITS = 4_300
"""CPython's own limit on reading a decimal integer back."""

TRACEBACK_FRAMES = 100
"""Innermost frames kept of a traceback: a runaway recursion has tens of thousands."""

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
"""Made once: `json.dumps` with options makes an encoder for every call."""
_decode = json.JSONDecoder().raw_decode
"""Decodes what begins with a value; `json.loads` spends longer around it than on small ones."""
_JSON_SPACE = " \t\n\r"

SCRUBBED = '{"scrubbed":true}'
"""What is stored instead of arguments that have been deleted."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def encode_arguments(args: Sequence[Any], kwargs: Mapping[str, Any], max_bytes: int) -> str:
    """Return the JSON text of a call's arguments.

    Raise UnsupportedType or InvalidArgument with the place of the first value that cannot
    travel, PayloadTooLarge if the text exceeds `max_bytes` UTF-8 bytes.
    """
    document = {
        "args": [_normalize(value, f"args[{i}]", 1) for i, value in enumerate(args)],
        "kwargs": {
            _checked_text(key, f"the keyword {key!r}"): _normalize(value, f"kwargs[{key!r}]", 1)
            for key, value in kwargs.items()
        },
    }
    return _dump(document, max_bytes, "The arguments")


def encode_value(value: Any, max_bytes: int, what: str = "result") -> str:
    """Return the JSON text of a result or a step's record; raise as `encode_arguments` does."""
    if value is None:
        return "null"
    return _dump(_normalize(value, what, 1), max_bytes, f"The {what}")


def decode_arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Return (args, kwargs) of an encoded call; raise InvalidArgument if it is not one."""
    if text == SCRUBBED:
        raise InvalidArgument(
            "The arguments of this job have been deleted (option SCRUB_ARGUMENTS), so it cannot "
            "run again. Enqueue a new one."
        )
    try:
        text = text.strip(_JSON_SPACE)
        document, end = _decode(text)
        if end != len(text):
            raise ValueError(f"something follows the value, from character {end} on")
        args, kwargs = document["args"], document["kwargs"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidArgument(f"The stored arguments cannot be decoded: {error!r}") from None
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise InvalidArgument("The stored arguments are not a list and a dict.")
    return args, kwargs


def round_trip(value: Any, max_bytes: int) -> Any:
    """Return `value` as a job would see it after storage."""
    return json.loads(encode_value(value, max_bytes, "value"))


def canonical(values: Mapping[str, Any]) -> str:
    """Return the one JSON text of values that a job would see as equal; raise as `encode_value`."""
    seen = {n: json.loads(encode_value(value, sys.maxsize, n)) for n, value in values.items()}
    return json.dumps(seen, sort_keys=True, separators=(",", ":"))


def _dump(document: Any, max_bytes: int, what: str) -> str:
    text = _encode(document)
    size = len(text) if text.isascii() else len(text.encode())
    if size > max_bytes:
        raise PayloadTooLarge(
            f"{what} take {size:,} bytes as JSON; the limit is {max_bytes:,}. Store the data in a "
            f"row or file and pass its key."
        )
    return text


def _normalize(value: Any, path: str, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _checked_text(_plain_text(value), path)
    if isinstance(value, int):
        return _checked_integer(value, path)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgument(f"{path} is {value!r}: JSON has no such number; use None.")
        return float(value)
    if isinstance(value, bytes):
        return _decoded_bytes(value, path)
    if depth > MAX_PAYLOAD_DEPTH:
        raise InvalidArgument(f"{path} lies more than {MAX_PAYLOAD_DEPTH} levels deep.")
    if isinstance(value, Mapping):
        return _normalized_mapping(value, path, depth)
    if isinstance(value, Sequence) and not isinstance(value, bytearray | memoryview):
        return [_normalize(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise UnsupportedType(f"{path} is a {_class_path(type(value))}: {_way_out(value)}")


def _normalized_mapping(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        name = _key_text(key, path)
        if name in result:
            raise InvalidArgument(f"{path} has two keys that both become {name!r} in JSON.")
        result[name] = _normalize(item, f"{path}[{key!r}]", depth + 1)
    return result


def _key_text(key: Any, path: str) -> str:
    if isinstance(key, bytes):
        return _decoded_bytes(key, f"a key of {path}")
    if isinstance(key, str):
        return _checked_text(_plain_text(key), f"a key of {path}")
    if key is None or isinstance(key, bool | int | float):
        _normalize(key, f"key {key!r} of {path}", 0)
        text: str = json.dumps({key: 0})
        return str(json.loads(text).popitem()[0])
    raise UnsupportedType(f"{path} has a key of type {_class_path(type(key))}; use text keys.")


def _plain_text(value: str) -> str:
    """Return the text that `value` holds, as Django sends it: of an enum's member, its value."""
    return str.__str__(value) if issubclass(type(value), str) else str(value)  # a lazy object


def _checked_text(text: str, path: str) -> str:
    if "\x00" in text:
        raise InvalidArgument(f"{path} holds a NUL character, which PostgreSQL cannot store.")
    if not text.isascii() and _SURROGATE.search(text):
        raise InvalidArgument(f"{path} holds a lone surrogate, which is not valid Unicode text.")
    return text


def _checked_integer(value: int, path: str) -> int:
    plain = int(value)
    if plain.bit_length() > MAX_INTEGER_DIGITS * 3:
        raise InvalidArgument(f"{path} is an integer of more than some thousand digits; pass text.")
    return plain


def _decoded_bytes(value: bytes, path: str) -> str:
    try:
        return _checked_text(value.decode(), path)
    except UnicodeDecodeError:
        raise InvalidArgument(
            f"{path} holds bytes that are not UTF-8; encode them, for example as base64 text."
        ) from None


def _way_out(value: Any) -> str:
    if hasattr(value, "_meta") and hasattr(value, "pk"):
        return "pass obj.pk and load the row in the task, which then sees its newest state."
    if hasattr(value, "isoformat"):
        return "pass value.isoformat() and parse it in the task."
    if isinstance(value, set | frozenset):
        return "pass sorted(value) or list(value)."
    if hasattr(value, "__promise__") or type(value).__module__ == "django.utils.functional":
        return "pass str(value), translated where you enqueue."
    return "pass text, a number, a list or a dict, for example str(value)."


def _class_path(cls: type) -> str:
    module = getattr(cls, "__module__", "") or ""
    name = getattr(cls, "__qualname__", cls.__name__)
    return name if module in ("builtins", "") else f"{module}.{name}"


# --- errors as text --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ErrorText:
    """An exception as bounded text: never pickled, never imported back."""

    class_path: str
    message: str
    traceback: str
    fingerprint: str

    def in_ascii(self) -> ErrorText:
        """Return the same with escapes: a database may have an encoding of few characters."""
        path, message, frames = (
            text.encode("ascii", "backslashreplace").decode()
            for text in (self.class_path, self.message, self.traceback)
        )
        return ErrorText(path[:255], message, frames, self.fingerprint)


def describe_exception(error: BaseException, max_traceback_bytes: int) -> ErrorText:
    """Return `error` as text that any database takes, whatever it is.

    Works when ``__str__`` raises, for messages of any size, groups, chains and runaway
    recursion. The message keeps at most 4 KiB, the traceback its innermost frames and at most
    `max_traceback_bytes`.
    """
    class_path = storable_text(f"{type(error).__module__}.{type(error).__qualname__}", 255)
    message = storable_text(_safe_message(error), MAX_MESSAGE_BYTES)
    return ErrorText(
        class_path=class_path,
        message=message,
        traceback=storable_text(_safe_traceback(error), max_traceback_bytes),
        fingerprint=error_fingerprint(class_path, message),
    )


def storable_text(text: str, max_bytes: int) -> str:
    """Return `text` escaped (NUL, lone surrogates) and cut to head and tail within `max_bytes`."""
    if len(text) > max_bytes:
        text = _head_and_tail(text, max_bytes)
    text = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
    while len(text.encode()) > max_bytes:
        text = _head_and_tail(text, max(len(text) * max_bytes // len(text.encode()) - 8, 40))
        if len(text) <= 40:
            break
    return text


def _head_and_tail(text: str, characters: int) -> str:
    gap = "\n… cut …\n" if characters > 200 else "…"
    room = max(characters - len(gap), 2)
    head = room // 3 if characters > 200 else room * 2 // 3
    return f"{text[:head]}{gap}{text[len(text) - (room - head) :]}"


def _safe_message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:
        return f"<the exception's __str__ raised {type(broken).__name__}>"


def _safe_traceback(error: BaseException) -> str:
    try:
        return "".join(
            traceback.TracebackException(
                type(error), error, error.__traceback__, limit=-TRACEBACK_FRAMES, compact=True
            ).format()
        )
    except BaseException as broken:
        return f"<the traceback could not be formatted: {type(broken).__name__}>"


_ALIKE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\w+://[^\s'\"<>]+"), "<address>"),
    (re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+"), "<address>"),
    # An apostrophe within a word opens and closes nothing: "can't open 'x'" quotes x.
    (re.compile(r"(?<!\w)'.*?'(?!\w)|\"[^\"]*\"|`[^`]*`|“[^”]*”|«[^»]*»"), "'…'"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "#"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "#"),
    (re.compile(r"\b(?=[a-fA-F]*\d)[0-9a-fA-F]{8,}\b"), "#"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "#"),
    (re.compile(r"\s+"), " "),
)
"""What differs between errors that are alike, and what stands for it; in this order."""

MAX_FINGERPRINTED = 500
"""Characters of a message's first line that decide what is alike."""


def normalized_message(message: str) -> str:
    """Return the first line of `message` without what differs from one such error to the next.

    Addresses, quoted text, ids and numbers are replaced: with the class it names a group of
    errors, and tells little of the data that they were about.
    """
    text = message.split("\n", 1)[0][:MAX_FINGERPRINTED]
    for pattern, replacement in _ALIKE:
        text = pattern.sub(replacement, text)
    return text.strip()


def error_fingerprint(class_path: str, message: str) -> str:
    """Return 32 hex digits that are equal for errors of a class with alike messages."""
    text = f"{class_path}\n{normalized_message(message)}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
