"""A text that a client has sent, checked against the protocol: a message, or a Refusal. Pure.

What JSON does not know (NaN), members that no message has, ids that are none, and what lies beyond
a limit are refused; the refusal names the subscription if that much could be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn
from uuid import UUID

from jobqueue.live.protocol import (
    MAX_CHANGES,
    MAX_FILTER_LENGTH,
    MAX_ID_LENGTH,
    MAX_WATCHED,
    JobParams,
    JobsParams,
    Message,
    Params,
    Ping,
    Refusal,
    Subscribe,
    Topic,
    Unsubscribe,
)

MAX_VERSION = 2**63 - 1
"""Of a job: a bigint."""

_ID = re.compile(rf"[\x20-\x7e]{{1,{MAX_ID_LENGTH}}}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MEMBERS = {
    "subscribe": {"type", "id", "topic", "params"},
    "unsubscribe": {"type", "id"},
    "ping": {"type"},
}


def read(text: str) -> Message:
    """Return the message that `text` is. Raise Refusal if it is none."""
    document = _object(text)
    kind = document.get("type")
    members = _MEMBERS.get(kind) if isinstance(kind, str) else None
    if members is None:
        raise Refusal("malformed-message", f"`type` must be one of {', '.join(_MEMBERS)}.")
    if unknown := set(document) - members:
        raise Refusal("malformed-message", f"{kind} has no member {min(unknown)[:80]!r}.")
    if kind == "ping":
        return Ping()
    subscription = _subscription(document)
    if kind == "unsubscribe":
        return Unsubscribe(subscription)
    try:
        topic = _topic(document)
        return Subscribe(subscription, topic, _params(topic, document.get("params")))
    except Refusal as refusal:
        raise Refusal(refusal.code, refusal.detail, subscription) from None


def _object(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refusal("malformed-message", "It is not JSON.") from None
    if not isinstance(document, dict):
        raise Refusal("malformed-message", "It must be a JSON object.")
    return document


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _subscription(document: Mapping[str, Any]) -> str:
    found = document.get("id")
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise Refusal(
            "malformed-message", f"`id` must be 1 to {MAX_ID_LENGTH} printable ASCII characters."
        )
    return found


def _topic(document: Mapping[str, Any]) -> Topic:
    try:
        return Topic(document.get("topic"))  # type: ignore[arg-type] # refused below
    except ValueError:
        raise _invalid(f"`topic` must be one of {', '.join(Topic)}.") from None


def _params(topic: Topic, given: Any) -> Params:
    params = {} if given is None else given
    if not isinstance(params, dict):
        raise _invalid("`params` must be an object.")
    if topic is Topic.JOBS:
        _check_members(params, {"filter", "watch", "size"})
        return JobsParams(
            filter=_filter(params.get("filter")),
            watch=_watch(params.get("watch")),
            size=_size(params.get("size")),
        )
    if topic is Topic.JOB:
        _check_members(params, {"job"})
        return JobParams(_uuid(params.get("job"), "job"))
    _check_members(params, set())
    return None


def _check_members(params: Mapping[str, Any], known: set[str]) -> None:
    if unknown := set(params) - known:
        meant = f"known are {', '.join(sorted(known))}" if known else "this topic has none"
        raise _invalid(f"`params` has the unknown member {min(unknown)[:80]!r}: {meant}.")


def _filter(given: Any) -> str:
    if given is None:
        return ""
    if not isinstance(given, str) or len(given) > MAX_FILTER_LENGTH:
        raise _invalid(f"`filter` must be text of at most {MAX_FILTER_LENGTH:,} characters.")
    if "\x00" in given or not given.isprintable():
        raise _invalid("`filter` has characters that cannot be printed.")
    return given


def _watch(given: Any) -> dict[UUID, int]:
    watch = {} if given is None else given
    if not isinstance(watch, dict) or len(watch) > MAX_WATCHED:
        raise _invalid(f"`watch` must be an object of at most {MAX_WATCHED} versions by id.")
    return {_uuid(job, "watch"): _version(version) for job, version in watch.items()}


def _size(given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MAX_CHANGES:
        raise _invalid(f"`size` must be a whole number from 1 to {MAX_CHANGES}, or null.")
    return given


def _uuid(given: Any, member: str) -> UUID:
    if not isinstance(given, str) or not _UUID.fullmatch(given):
        raise _invalid(f"`{member}` needs ids such as 01890a5d-ac96-774b-bcce-b302099a8057.")
    return UUID(given)


def _version(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= MAX_VERSION:
        raise _invalid("A version must be a whole number, 0 for a job that is not known yet.")
    return given


def _invalid(detail: str) -> Refusal:
    return Refusal("invalid-parameters", detail)
