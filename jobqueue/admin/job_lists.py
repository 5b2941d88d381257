"""The list of jobs: search box and sidebar as one filter, read a page at a time.

Live and dead jobs are found through the indexes of their states, tags and ids through theirs;
the history along its primary key, a bounded number of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import permissions
from jobqueue.admin.job_filters import chosen_terms
from jobqueue.admin.lists import KeysetChangeList
from jobqueue.disclosure import READ_AHEAD
from jobqueue.engine.job_walks import (
    Entries,
    Walk,
    along,
    along_table,
    gather,
    merged,
    near,
    through,
    through_table,
)
from jobqueue.exceptions import InvalidFilter
from jobqueue.filters import (
    DEFAULT_STATES,
    Filter,
    Term,
    bindings_of,
    matching,
    parse,
    refusal_of,
    states_of,
    term,
)
from jobqueue.filters.query import state_condition
from jobqueue.models import Attempt, Job, Worker
from jobqueue.models.job import LISTED_STATES
from jobqueue.states import LIVE, State

LARGE_COLUMNS = ("arguments", "result", "trace_context", "error_message")
MAX_MESSAGE = 300
"""Characters of an error's message that a list shows."""
HISTORY_LOOKS = 2
"""Windows of the history, or of one state, that one page looks at."""


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """Why a filter cannot be used, for whoever wrote it."""

    problem: str
    pointer: str = ""

    def __str__(self) -> str:
        return self.problem


def filter_of(request: HttpRequest, text: str, specs: Any = ()) -> Filter:
    """Return what search box and sidebar say together. Raise Refused.

    Whoever may not see payloads may not ask for them, either: answers would tell.
    """
    try:
        chosen = Filter((*parse(text).terms, *chosen_terms(specs)))
    except InvalidFilter as error:
        raise Refused(str(error), error.pointer) from None
    refusal = refusal_of(chosen, permissions.may(request.user, permissions.VIEW_PAYLOAD))
    if refusal is None:
        return chosen
    if refusal.permission:
        raise Refused(_("You may not see arguments and errors, so you cannot search in them."))
    raise Refused(
        _("%(name)s is kept secret: nobody looks for jobs by it.") % {"name": refusal.subject}
    )


def with_states(chosen: Filter, default: frozenset[State]) -> Filter:
    """Return `chosen` with the states that it means by default written out."""
    if any(chosen.of("state")):
        return chosen
    states = [state.value for state in State if state in default]
    return Filter((term("state", *states), *chosen.terms))


class JobChangeList(KeysetChangeList):
    """A page of jobs: the live ones, until a search or the filter of states says otherwise."""

    order_text = gettext_lazy("The newest enqueued first.")
    refused: Refused | None = None
    chosen = Filter()

    @property
    def default_states(self) -> frozenset[State]:
        """The states that are meant where none is named; a search looks at dead letters, too."""
        return DEFAULT_STATES if self.query.strip() else LIVE

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Job]:
        specs, self.has_filters, _rest, _dup, self.has_active_filters = self.get_filters(request)
        self.filter_specs = specs
        self.clear_all_filters_qs = "?"
        rows: QuerySet[Job] = self.root_queryset
        try:
            self.chosen = filter_of(request, self.query, specs)
        except Refused as refused:
            self.refused = refused
            return rows.none()
        return self._matching(rows, self.chosen)

    def _matching(self, rows: QuerySet[Job], chosen: Filter) -> QuerySet[Job]:
        return matching(
            rows,
            chosen,
            timezone.now(),
            bindings=bindings_of(chosen),
            default=self.default_states,
        )

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if self.refused is not None and request.method != "POST":
            messages.error(
                request, _("This filter cannot be used: %(why)s") % {"why": self.refused}
            )

    # --- how they are found ---------------------------------------------------------------------

    def walk(self) -> Walk:
        """Return how the jobs are found: in a handful of statements, each of them bounded.

        Dead letters are kept for long and lie everywhere in the table, so where terms narrow the
        list they are looked through in windows, apart from the live jobs, which lie together.
        """
        found, every = self.queryset, self.root_queryset
        states = states_of(self.chosen, self.default_states)
        terms = [each for each in self.chosen.terms if each.key != "state"]
        if self.refused is not None or any(_names_few(each) for each in terms):
            return gather(found)
        if not states <= DEFAULT_STATES | LISTED_STATES:
            is_all = not terms and states == frozenset(State)
            return along_table(found) if is_all else through_table(every, found, HISTORY_LOOKS)
        if len(states) == 1 and states <= LISTED_STATES:
            return self._of_state(next(iter(states)), terms, HISTORY_LOOKS)
        if not terms or not states <= DEFAULT_STATES:
            return near(every, found)
        parts = [near(every, self._in(states - {State.DEAD}))]
        if State.DEAD in states:
            parts.append(self._of_state(State.DEAD, terms, 1))
        return lambda span: merged([part(span) for part in parts], span.newer)

    def _of_state(self, state: State, terms: list[Term], looks: int) -> Walk:
        listed = self.root_queryset.filter(state__in=sorted(LISTED_STATES))
        entries = Entries(listed, "state", state.value)
        alike = next((each for each in terms if _is_plain(each, "fingerprint")), None)
        if state == State.DEAD and alike is not None:
            dead = self.root_queryset.filter(state=state.value)
            entries = Entries(dead, "error_fingerprint", alike.values[0].text)
        return through(entries, self._in({state}), looks) if terms else along(entries)

    def _in(self, states: Iterable[State]) -> QuerySet[Job]:
        """Return the jobs that match, in these of the states."""
        rows: QuerySet[Job] = self.queryset.filter(state_condition(frozenset(states)))
        return rows

    def rows(self, keys: list[Any]) -> list[Job]:
        """Return the jobs of a page, with what their columns show."""
        if not keys:
            return []
        found = self.root_queryset.filter(pk__in=keys).defer(*LARGE_COLUMNS)
        found = found.annotate(
            error_head=Left("error_message", MAX_MESSAGE + READ_AHEAD),
            worker_name=Subquery(Worker.objects.filter(pk=OuterRef("worker")).values("name")[:1]),
        )
        jobs = sorted(found, key=lambda job: job.pk, reverse=True)
        last = last_runs(self.root_queryset.db, jobs)
        for job in jobs:
            job.last_run = last.get(job.pk)
        return jobs

    # --- what it leaves out ---------------------------------------------------------------------

    @property
    def hidden_states(self) -> str:
        """Which states are hidden because nobody has asked for any; "" where somebody has."""
        if self.refused is not None or any(self.chosen.of("state")):
            return ""
        if State.DEAD in self.default_states:
            return _("Jobs that succeeded or were cancelled are not shown.")
        return _("Live jobs only (waiting or running).")

    @property
    def hidden_urls(self) -> list[tuple[str, str]]:
        """What shows the hidden ones: its name and address."""
        dead = (_("Dead ones"), self.get_query_string({"state": State.DEAD.value}))
        every = (_("Jobs in every state"), self.get_query_string({"state": "any"}))
        return [every] if State.DEAD in self.default_states else [dead, every]

    # --- all that match -------------------------------------------------------------------------

    @property
    def filter_text(self) -> str:
        """The filter of this list, with its states: what a bulk operation is asked to take."""
        return str(with_states(self.chosen, self.default_states))


def _names_few(one: Term) -> bool:
    """Return whether an index finds the jobs that a term demands, whatever their state."""
    return _is_plain(one, "id") or _is_plain(one, "tag")


def _is_plain(one: Term, key: str) -> bool:
    """Return whether a term demands one plain value of a key."""
    is_plain = one.key == key and len(one.values) == 1 and not one.is_negated
    return is_plain and not one.values[0].is_pattern


def last_runs(database: str, jobs: list[Any]) -> dict[UUID, tuple[datetime, datetime]]:
    """Return when the newest attempt of each job began and ended."""
    wanted = Q()
    for job in jobs:
        if job.attempts:
            wanted |= Q(job_id=job.pk, number=job.attempts)
    if not wanted:
        return {}
    rows = Attempt.objects.using(database).filter(wanted)
    found = rows.values_list("job_id", "started_at", "finished_at")
    return {job_id: (started, finished) for job_id, started, finished in found}
