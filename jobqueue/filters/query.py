"""Terms to conditions of the ORM, in a form that partial indexes on states serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from jobqueue.filters.arguments import Bindings, condition
from jobqueue.filters.keys import STATE_GROUPS
from jobqueue.filters.terms import Filter, Term, Value
from jobqueue.filters.times import moment_of
from jobqueue.models import Job, JobTag, Worker
from jobqueue.states import LIVE, State

DEFAULT_STATES = LIVE | {State.DEAD}
"""Where a filter looks that names no state: what is indexed, and what somebody may act on."""

_TEXT_COLUMNS = ("task", "error_class", "error_message", "reason")
_COLUMNS = {
    "schedule": "schedule",
    "queue": "queue",
    "task": "task",
    "reason": "reason",
    "backend": "backend",
    "created_by": "created_by",
    "priority": "priority",
    "attempts": "attempts",
    "failures": "failures",
    "fingerprint": "error_fingerprint",
    "copied_from": "copied_from",
    "id": "id",
    "created": "enqueued_at",
    "run_at": "run_at",
    "finished": "finished_at",
}
_LOOKUPS = {":": "", ">": "__gt", ">=": "__gte", "<": "__lt", "<=": "__lte"}
_TIMES = frozenset({"created", "run_at", "finished"})


def matching(
    jobs: QuerySet[Job],
    chosen: Filter,
    now: datetime,
    *,
    bindings: Bindings | None = None,
    default: frozenset[State] = DEFAULT_STATES,
) -> QuerySet[Job]:
    """Return those of `jobs` that match.

    now: the database's clock, for times like -2h; others are of the current time zone.
    bindings: see `jobqueue.filters.arguments`. default: the states looked at if none is named.
    """
    states = states_of(chosen, default)
    if not states:
        return jobs.none()
    jobs = jobs.filter(state_condition(states))
    for term in chosen.terms:
        if term.key != "state":
            found = _condition(term, now, bindings or {})
            jobs = jobs.filter(~found if term.is_negated else found)
    return jobs


def states_of(chosen: Filter, default: frozenset[State] = DEFAULT_STATES) -> frozenset[State]:
    """Return the states that jobs matching `chosen` can be in."""
    terms = list(chosen.of("state"))
    states = frozenset(State) if any(not term.is_negated for term in terms) else default
    for term in terms:
        named = frozenset[State]().union(*(_states(value) for value in term.values))
        states = states - named if term.is_negated else states & named
    return states


def state_condition(states: frozenset[State]) -> Q:
    """Return the condition for `states`: each alone, for an index on one state serves no IN."""
    found = Q()
    if len(states) < len(State):
        for state in State:
            if state in states:
                found |= Q(state=state.value)
    return found


def _states(value: Value) -> frozenset[State]:
    return STATE_GROUPS.get(value.text) or frozenset({State(value.text)})


# --- one term -------------------------------------------------------------------------------------


def _condition(term: Term, now: datetime, bindings: Bindings) -> Q:
    if term.key == "args":
        return condition(term, bindings)
    if term.key in _TIMES:
        zone = timezone.get_current_timezone()
        (value,) = term.values
        return _compared(term, moment_of(value.text, now, zone))
    if term.operator != ":":
        return _compared(term, term.values[0].text)
    one = _SPECIAL.get(term.key)
    found = Q()
    for value in term.values:
        found |= _text(_COLUMNS[term.key], value) if one is None else one(value)
    return found


def _compared(term: Term, value: object) -> Q:
    return Q(**{f"{_COLUMNS[term.key]}{_LOOKUPS[term.operator]}": value})


def _text(column: str, value: Value) -> Q:
    if value.any_before and value.any_after:
        return Q(**{f"{column}__contains": value.text}) if value.text else ~Q(**{column: ""})
    if value.any_before:
        return Q(**{f"{column}__endswith": value.text})
    if value.any_after:
        return Q(**{f"{column}__startswith": value.text})
    return Q(**{column: value.text})


def _free(value: Value) -> Q:
    # An id is looked for as such alone: whoever may not search in texts may still find a job.
    with suppress(ValueError):
        return Q(id=UUID(value.text))
    found = Q()
    for column in _TEXT_COLUMNS:
        found |= Q(**{f"{column}__icontains": value.text})
    return found


def _tag(value: Value) -> Q:
    return Q(id__in=JobTag.objects.filter(tag=value.text).values("job_id"))


def _error(value: Value) -> Q:
    found = _text("error_class", value)
    if not value.any_before and "." not in value.text:
        found |= _text("error_class", Value(f".{value.text}", True, value.any_after))
    return found


def _worker(value: Value) -> Q:
    if not value.is_pattern:
        with suppress(ValueError):
            return Q(worker=UUID(value.text))
    named = Worker.objects.filter(_text("name", value) | _text("host", value))
    return Q(worker__in=named.values("id"))


def _message(value: Value) -> Q:
    return Q(error_message__icontains=value.text)


_SPECIAL: Mapping[str, Callable[[Value], Q]] = {
    "": _free,
    "tag": _tag,
    "error": _error,
    "worker": _worker,
    "message": _message,
}
