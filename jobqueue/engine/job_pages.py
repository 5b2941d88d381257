"""Pages of jobs in the order of their ids, the newest first: what every surface lists.

    page = job_page(parse("state:dead queue:mail"), limit=50)
    page.jobs                                      # without arguments and results
    job_page(chosen, older_than=page.older)        # the next one, None at the end

Ids are drawn at enqueue and never change, so nothing is shown twice or left out while jobs come,
go and change state. Nothing is counted. A page costs a bounded number of short looks, however many
jobs there are and however few match (see `jobqueue.engine.job_walks`): where little matches, it may
come back with fewer jobs than asked for, or none, and `is_partial`: how far was looked is in
`older`, and from there one goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from uuid import UUID

from django.db import connections
from django.db.models import QuerySet

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import options_for
from jobqueue.engine.job_walks import (
    Entries,
    Span,
    Walk,
    Walked,
    along,
    along_table,
    gather,
    merged,
    near,
    through,
    through_table,
)
from jobqueue.exceptions import InvalidArgument
from jobqueue.filters import Filter, Term, bindings_of, matching, states_of
from jobqueue.models import Job, JobTag
from jobqueue.models.job import LISTED_STATES, JobQuerySet
from jobqueue.states import LIVE, State
from jobqueue.storage import Storage, storage_for

MAX_PAGE = 1_000
"""Jobs on one page: more than anybody reads, and little enough to send."""
DEFAULT_PAGE = 50
SMALL = 2_000
"""A state with so few jobs is read whole and sorted."""
LARGE_COLUMNS = ("arguments", "result", "trace_context")
"""What no list reads."""

ALL_STATES = frozenset(State)
COUNTED_STATES = LIVE | {State.DEAD}
"""States of which the number is known, as far as `SMALL`."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, the newest first.

    older, newer: where the pages beside it begin, for `older_than` and `newer_than`; None where
    there is none. is_partial: the search stopped before the page was full; `older` (or `newer`,
    whichever way was looked) goes on.
    """

    jobs: Sequence[Job]
    older: UUID | None
    newer: UUID | None
    is_partial: bool = False


def job_page(
    chosen: Filter | None = None,
    *,
    older_than: UUID | None = None,
    newer_than: UUID | None = None,
    limit: int = DEFAULT_PAGE,
    default: frozenset[State] = ALL_STATES,
    owner: str | None = None,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    columns: Sequence[str] = (),
) -> JobPage:
    """Return a page of the jobs that match.

    default: the states that are looked at if `chosen` names none. owner: only jobs that this actor
    has made. columns: those that are read of each job, by default all but the large ones. Raise
    InvalidArgument for a limit beyond `MAX_PAGE`, or two edges.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidArgument(f"A page has 1 to {MAX_PAGE} jobs, not {limit}.")
    if older_than is not None and newer_than is not None:
        raise InvalidArgument("Give the id that jobs are older than, or newer than, not both.")
    if owner == "":
        raise InvalidArgument("An owner has a name: nobody has made the jobs of nobody.")
    plan = _Plan(chosen or Filter(), default, owner, backend, columns)
    newer = newer_than is not None
    edge = newer_than if newer else older_than
    span = Span(limit=limit + 1, edge=edge, newer=newer)
    walked = merged([walk(span) for walk in plan.walks()], newer)
    return _page(plan, walked, limit, edge, newer)


def newest_first(rows: JobQuerySet, ids: Sequence[UUID], columns: Sequence[str] = ()) -> list[Job]:
    """Return the jobs of `ids` for a list: those that are still there, without large columns.

    Where no columns are named, each knows its `last_started_at`.
    """
    found = rows.filter(id__in=ids)
    found = found.only(*columns) if columns else found.defer(*LARGE_COLUMNS).with_last_start()
    return sorted(found, key=lambda job: job.id, reverse=True)


def _page(plan: _Plan, walked: Walked, limit: int, edge: UUID | None, newer: bool) -> JobPage:
    ids = walked.ids[:limit]
    has_more = len(walked.ids) > limit
    beyond = ids[-1] if has_more else walked.searched_to
    # The way back: from the first job here, which may lead to an empty page.
    back = None if edge is None else (ids[0] if ids else edge)
    return JobPage(
        jobs=newest_first(plan.rows, ids, plan.columns) if ids else [],
        older=back if newer else beyond,
        newer=beyond if newer else back,
        is_partial=not has_more and walked.searched_to is not None,
    )


# --- which indexes serve --------------------------------------------------------------------------


class _Plan:
    """Which walks find the jobs of a filter."""

    def __init__(
        self,
        chosen: Filter,
        default: frozenset[State],
        owner: str | None,
        backend: str,
        columns: Sequence[str],
    ) -> None:
        options = options_for(backend)
        self.database = options.database
        self.rows = Job.objects.using(self.database)
        self.columns = columns
        self.states = states_of(chosen, default)
        self._storage = storage_for(connections[self.database], options)
        self._terms = tuple(term for term in chosen.terms if term.key != "state")
        self._owner = owner
        self._bindings = bindings_of(chosen)
        if any(term.key == "worker" and not term.is_negated for term in self._terms):
            self.states &= {State.RUNNING}  # a constraint: no other job has a worker

    def walks(self) -> list[Walk]:
        """Return the walks that together find all."""
        if not self.states:
            return []
        if self._only("id"):
            return [gather(self._found(self.states))]
        tag = self._only("tag")
        if tag is not None:
            rows = JobTag.objects.using(self.database)
            entries = Entries(rows, "tag", tag.values[0].text, "job_id")
            return [through(entries, self._found(self.states, without=tag))]
        creator = self._creator()
        if creator is not None:
            entries = Entries(self.rows.filter(created_by__gt=""), "created_by", creator)
            return [through(entries, self._found(self.states))]
        if State.SUCCEEDED in self.states:
            return [self._history()]
        return self._by_state()

    def _history(self) -> Walk:
        found = self._found(self.states)
        if self._is_bare and self.states == ALL_STATES:
            return along_table(found)
        return through_table(self.rows, found)

    def _by_state(self) -> list[Walk]:
        small = self.states & _small(self._storage)
        walks = [gather(self._found(small))] if small else []
        return walks + [self._of_state(state) for state in sorted(self.states - small)]

    def _of_state(self, state: State) -> Walk:
        found = self._found({state})
        if state not in LISTED_STATES:
            return near(self.rows, found)
        entries = Entries(self.rows.filter(state__in=sorted(LISTED_STATES)), "state", state.value)
        if self._is_bare:
            return along(entries)
        alike = self._only("fingerprint")
        if state == State.DEAD and alike is not None:
            dead = self.rows.filter(state=state.value)
            entries = Entries(dead, "error_fingerprint", alike.values[0].text)
        return through(entries, found)

    def _found(self, states: Iterable[State], without: Term | None = None) -> QuerySet[Job]:
        """Return the jobs that match, in one of `states`."""
        terms = Filter(tuple(term for term in self._terms if term is not without))
        rows = self.rows
        if self._owner is not None:
            rows = rows.filter(created_by=self._owner, created_by__gt="")
        return matching(rows, terms, self._now, bindings=self._bindings, default=frozenset(states))

    @cached_property
    def _now(self) -> datetime:
        """The database's time; without terms nothing asks for it."""
        return self._storage.clock() if self._terms else datetime.now(UTC)

    @property
    def _is_bare(self) -> bool:
        return not self._terms and self._owner is None

    def _creator(self) -> str | None:
        """Return who must have made the jobs, if that is one."""
        if self._owner:
            return self._owner
        term = self._only("created_by")
        return None if term is None else term.values[0].text

    def _only(self, key: str) -> Term | None:
        """Return the term that demands one plain value of `key`, if there is one."""
        for term in self._terms:
            if term.key == key and not term.is_negated and len(term.values) == 1:
                value = term.values[0]
                if value.text and not value.is_pattern:
                    return term
        return None


def _small(storage: Storage) -> frozenset[State]:
    """Return the states with so few jobs that they are read whole."""
    counts = storage.state_counts(SMALL + 1)
    waiting = {State.SCHEDULED, State.RETRYING}  # counted together, hence cut off together
    small = {s for s in COUNTED_STATES - waiting if counts.get(s, 0) <= SMALL}
    if sum(counts.get(state, 0) for state in waiting) <= SMALL:
        small |= waiting
    return frozenset(small)
