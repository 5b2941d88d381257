"""Which jobs a list is about: the plain parameters, and the filter language, as one filter.

Whoever may not see payloads may not ask for them, either: a list that changes with the guess tells
what is in it. So terms about arguments and the text of errors need the same permission, and those
about arguments whose name says that they are secret are refused to all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rest_framework import serializers

from jobqueue.api.caller import Caller
from jobqueue.api.problems import FieldError, Problem
from jobqueue.api.resources.jobs.fields import Text
from jobqueue.api.serializers import StrictSerializer
from jobqueue.exceptions import InvalidFilter
from jobqueue.filters import (
    DEFAULT_STATES,
    Filter,
    Term,
    Value,
    parse,
    refusal_of,
)
from jobqueue.states import State

ARGUMENT = re.compile(r"args(\.[^.:<>=\s\"\\]{1,200}){1,8}")
_LISTS = {"state": "state", "queue": "queue", "task": "task"}
_SINGLE = {
    "tag": "tag",
    "error": "error",
    "fingerprint": "fingerprint",
    "worker": "worker",
    "schedule": "schedule",
    "created_by": "created_by",
}
_RANGES = {
    "created_after": ("created", ">="),
    "created_before": ("created", "<"),
    "run_at_after": ("run_at", ">="),
    "run_at_before": ("run_at", "<"),
    "finished_after": ("finished", ">="),
    "finished_before": ("finished", "<"),
}
_TIME = "A time (2026-01-31T08:00:00Z), or one relative to now (-2h)."


def _parameter(help_text: str) -> Text:
    return Text(required=False, max_length=1_000, help_text=help_text)


class JobsQuery(StrictSerializer):
    """Which jobs, and which page of them. Beside these, `args.<path>=value`."""

    open_ended = True

    q = Text(
        required=False,
        allow_blank=True,
        help_text="A filter, such as `state:dead queue:mail error:ValueError`. One that names no "
        "state looks at jobs that are live or dead.",
    )
    state = _parameter("One or more, with commas: also live, waiting, finished, any.")
    queue = _parameter("One or more, with commas.")
    task = _parameter("One or more, with commas.")
    tag = _parameter("A tag.")
    error = _parameter("The class of the last error, with or without its module.")
    fingerprint = _parameter("Errors that are alike.")
    worker = _parameter("Identity, name or host of the worker that runs it.")
    schedule = _parameter("The schedule that it comes from.")
    created_by = _parameter("Who made it.")
    created_after = _parameter(_TIME)
    created_before = _parameter(_TIME)
    run_at_after = _parameter(_TIME)
    run_at_before = _parameter(_TIME)
    finished_after = _parameter(_TIME)
    finished_before = _parameter(_TIME)
    older_than = serializers.UUIDField(required=False, help_text="Jobs before this id.")
    newer_than = serializers.UUIDField(required=False, help_text="Jobs behind this id.")
    limit = serializers.IntegerField(
        required=False, min_value=1, max_value=1_000, help_text="Jobs on a page."
    )

    def is_known(self, name: str) -> bool:
        """Return whether there may be such a parameter."""
        return super().is_known(name) or ARGUMENT.fullmatch(name) is not None

    def validate_limit(self, limit: int) -> int:
        """Refuse more than MAX_PAGE_SIZE."""
        most = self.context["view"].options.max_page_size
        if limit > most:
            raise serializers.ValidationError(f"must be at most {most}")
        return limit

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse two edges, and return the filter with the rest."""
        if "older_than" in attrs and "newer_than" in attrs:
            raise serializers.ValidationError({"newer_than": "does not go with older_than"})
        chosen = _chosen(attrs, self.initial_data)
        check_filter(chosen, self.context["view"].caller)
        has_words = bool(attrs.get("q", "").strip())
        default = DEFAULT_STATES if has_words else frozenset(State)
        return {**attrs, "filter": chosen, "default_states": default}


def _chosen(given: Mapping[str, Any], raw: Mapping[str, Any]) -> Filter:
    """Return the filter that all parameters make together."""
    terms = list(parse(given.get("q", "")).terms)
    for name, term in _plain(given, raw):
        try:
            terms += parse(str(term)).terms
        except InvalidFilter as error:
            raise serializers.ValidationError({name: [error.problem]}) from None
    return Filter(tuple(terms))


def _plain(given: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[tuple[str, Term]]:
    for name, key in _LISTS.items():
        if name in given:
            yield name, Term(key, tuple(Value(v) for v in given[name].split(",")))
    for name, key in _SINGLE.items():
        if name in given:
            yield name, Term(key, (Value(given[name]),))
    for name, (key, operator) in _RANGES.items():
        if name in given:
            yield name, Term(key, (Value(given[name]),), operator)
    for name in raw:
        if ARGUMENT.fullmatch(name):
            yield name, Term("args", (Value(raw[name]),), path=tuple(name.split(".")[1:]))


# --- what may be asked ----------------------------------------------------------------------------


def check_filter(chosen: Filter, caller: Caller) -> None:
    """Raise Problem for what the caller may not ask for."""
    refusal = refusal_of(chosen, caller.sees_payload)
    if refusal is None:
        return
    if refusal.permission:
        raise Problem("permission-denied", str(refusal), permission=refusal.permission)
    error = FieldError(str(refusal), parameter=refusal.subject)
    raise Problem("invalid-parameters", errors=[error])
