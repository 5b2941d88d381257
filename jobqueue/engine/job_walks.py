"""Walks along an index, by which a page of jobs is found: bounded whatever matches, however old.

A page is asked for in the order of ids. Few indexes of the hot table have that order, so each part
of what is asked for is walked along the one that serves it:

- states with few jobs are read whole, through their partial indexes, and sorted;
- a state with many has an index in the order of ids, or is (ready) what was enqueued last;
- the history is the table itself, in the order of its primary key.

A walk looks at a window of index entries at a time and compares only what the window holds; after
some windows it stops and says how far it came. So a filter that matches little costs some short
looks, never a read of the table, and the caller may go on from there.

Planners take the primary key for any "order by id limit n", in the hope of meeting n rows soon; if
they lie behind millions of others, that reads the millions. Hence two forms that it cannot serve:
`Entries` are ordered by the leading column, too, and matching rows by the text of their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, CharField, F, Func, QuerySet, UUIDField, Value
from django.db.models.functions import Cast
from django.db.models.lookups import GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual

from jobqueue.models import Job

WINDOW = 10_000
"""Entries that one look compares, whether they match or not."""
LOOKS = 10
"""Looks of one walk: a hundred thousand rows are compared in some tenths of a second."""

Rows = QuerySet[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What is wanted: at most `limit` ids beyond `edge` (None: from the end), older or newer."""

    limit: int
    edge: UUID | None = None
    newer: bool = False

    def cut(self, rows: Rows, end: UUID | None = None) -> Rows:
        """Return those of `rows` beyond the edge, and not beyond `end`."""
        if self.edge is not None:
            rows = rows.filter(**{"id__gt" if self.newer else "id__lt": self.edge})
        if end is not None:
            rows = rows.filter(**{"id__lte" if self.newer else "id__gte": end})
        return rows

    def ordered(self, rows: Rows) -> Rows:
        """Return rows of jobs in the order of a walk, along the primary key."""
        return rows.order_by("id" if self.newer else "-id")

    def sorted(self, rows: Rows) -> Rows:
        """Return rows of jobs in the order of a walk, along no index."""
        text = Cast("id", CharField())
        return rows.order_by(text.asc() if self.newer else text.desc())

    def ids(self, rows: Rows) -> list[UUID]:
        """Return the first ids of ordered rows."""
        return list(rows.values_list("id", flat=True)[: self.limit])


@dataclass(frozen=True, slots=True)
class Entries:
    """What an index on a leading column and an id has for one value of that column."""

    rows: Rows
    lead: str
    value: str
    column: str = "id"

    def cut(self, span: Span, end: UUID | None = None) -> Rows:
        """Return the entries of a span, not beyond `end`."""
        # Not "=": a planner would know that the order of the leading column says nothing.
        same = {f"{self.lead}__gte": self.value, f"{self.lead}__lte": self.value}
        rows = self.rows.filter(**same)
        here = _Pair(F(self.lead), F(self.column))
        beyond, within = (
            (GreaterThan, LessThanOrEqual) if span.newer else (LessThan, GreaterThanOrEqual)
        )
        if span.edge is not None:
            rows = rows.filter(beyond(here, self._at(span.edge)))
        return rows if end is None else rows.filter(within(here, self._at(end)))

    def ids(self, span: Span) -> Rows:
        """Return the ids of a span, in the order of a walk."""
        sign = "" if span.newer else "-"
        ordered = self.cut(span).order_by(f"{sign}{self.lead}", f"{sign}{self.column}")
        return ordered.values_list(self.column, flat=True)

    def _at(self, edge: UUID) -> Func:
        return _Pair(Value(self.value, CharField()), Value(edge, UUIDField()))


class _Pair(Func):
    """Two columns, compared one after the other as an index does."""

    template = "(%(expressions)s)"
    output_field = BooleanField()  # of no use: only compared with its like


@dataclass(frozen=True, slots=True)
class Walked:
    """The ids that were found, and how far was looked; None: to the end."""

    ids: list[UUID]
    searched_to: UUID | None


Walk = Callable[[Span], Walked]


def merged(walks: Sequence[Walked], newer: bool) -> Walked:
    """Return what several walks have found, as far as all of them have looked."""
    nearest = min if newer else max
    ends = [walked.searched_to for walked in walks if walked.searched_to is not None]
    end = nearest(ends, default=None)
    found = {job_id for walked in walks for job_id in walked.ids}
    if end is not None:
        found = {job_id for job_id in found if nearest(job_id, end) == job_id or job_id == end}
    return Walked(sorted(found, reverse=not newer), end)


# --- without windows ------------------------------------------------------------------------------


def gather(found: QuerySet[Job]) -> Walk:
    """Return a walk that reads all of `found` through whatever index is shortest, and sorts it."""
    return lambda span: _full_or_end(span.ids(span.sorted(span.cut(found))), span)


def along_table(found: QuerySet[Job]) -> Walk:
    """Return a walk along the primary key, for what is (nearly) all there is."""
    return lambda span: _full_or_end(span.ids(span.ordered(span.cut(found))), span)


def along(entries: Entries) -> Walk:
    """Return a walk for all entries of an index."""
    return lambda span: _full_or_end(list(entries.ids(span)[: span.limit]), span)


def _full_or_end(ids: list[UUID], span: Span) -> Walked:
    return Walked(ids, ids[-1] if len(ids) == span.limit else None)


# --- in windows -----------------------------------------------------------------------------------

End = Callable[[Span], UUID | None]
Look = Callable[[Span, UUID | None], Rows]


def through_table(rows: QuerySet[Job], found: QuerySet[Job], looks: int = LOOKS) -> Walk:
    """Return a walk through the table, for those of its jobs that are among `found`."""
    return _windows(
        lambda span: _last(span.ordered(span.cut(rows)).values_list("id", flat=True)),
        lambda span, end: span.ordered(span.cut(found, end)),
        looks,
    )


def through(entries: Entries, found: QuerySet[Job], looks: int = LOOKS) -> Walk:
    """Return a walk through the entries of an index, for those that are among `found`.

    found: of an index on jobs, the jobs that match; else only those of the entries count.
    """

    def look(span: Span, end: UUID | None) -> Rows:
        if entries.column == "id":
            return span.sorted(span.cut(found, end))
        ids = entries.cut(span, end).values(entries.column)
        return span.sorted(found.filter(id__in=ids))

    return _windows(lambda span: _last(entries.ids(span)), look, looks)


def near(rows: QuerySet[Job], found: QuerySet[Job]) -> Walk:
    """Return a walk for what is usually close to the edge: one look there, else all of `found`."""
    look, whole = through_table(rows, found, looks=1), gather(found)

    def walk(span: Span) -> Walked:
        walked = look(span)
        is_enough = len(walked.ids) == span.limit or walked.searched_to is None
        return walked if is_enough else whole(span)

    return walk


def _windows(end_of: End, look: Look, looks: int) -> Walk:
    def walk(span: Span) -> Walked:
        ids: list[UUID] = []
        edge = span.edge
        for _ in range(looks):
            here = Span(limit=span.limit - len(ids), edge=edge, newer=span.newer)
            end = end_of(here)
            ids += here.ids(look(here, end))
            if len(ids) == span.limit:
                return Walked(ids, ids[-1])
            if end is None:
                return Walked(ids, None)
            edge = end
        return Walked(ids, edge)

    return walk


def _last(ids: Rows) -> UUID | None:
    """Return the last id of a window, None if there are fewer."""
    found: UUID | None = ids[WINDOW - 1 : WINDOW].first()
    return found
