"""What a bulk operation is about: which verbs there are, which jobs it means, what is done to each.

Pure but for the queries it makes; nothing here writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from jobqueue.engine import verbs
from jobqueue.engine.changes import Change
from jobqueue.engine.operations import Desk
from jobqueue.exceptions import InvalidArgument
from jobqueue.filters import Filter, matching, states_of
from jobqueue.filters.query import state_condition
from jobqueue.models import Attempt, Job
from jobqueue.states import WAITING, State


@dataclass(frozen=True, slots=True)
class BulkVerb:
    """A verb that is done in bulk: the states it leaves, and its parameters."""

    sources: frozenset[State]
    needs: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()


BULK_VERBS: Mapping[str, BulkVerb] = {
    "requeue": BulkVerb(verbs.ACTIONS["requeue"], takes=frozenset({"run_at", "spread"})),
    "cancel": BulkVerb(verbs.ACTIONS["cancel"], takes=frozenset({"reason"})),
    "discard": BulkVerb(verbs.ACTIONS["discard"], takes=frozenset({"reason"})),
    "reschedule": BulkVerb(WAITING, needs=frozenset({"run_at"}), takes=frozenset({"spread"})),
    "run_now": BulkVerb(WAITING),
    "reprioritize": BulkVerb(WAITING, needs=frozenset({"priority"})),
    "move": BulkVerb(WAITING, needs=frozenset({"queue"})),
}
"""Running jobs are asked to stop, as one by one; force is for those who name a job."""

Dues = Mapping[UUID, datetime]


def change_of(desk: Desk, verb: str, parameters: Mapping[str, Any], dues: Dues | None) -> Change:
    """Return what `verb` does to a job, by the rules for a single one."""
    if verb == "requeue":
        return verbs.requeue(desk, dues)
    if verb == "reschedule":
        return verbs.reschedule(desk, datetime.fromisoformat(parameters["run_at"]), dues)
    if verb == "reprioritize":
        return verbs.reprioritize(desk, parameters["priority"])
    if verb == "move":
        return verbs.move(desk, parameters["queue"])
    if verb == "run_now":
        return verbs.run_now(desk)
    make = verbs.cancel if verb == "cancel" else verbs.discard
    return make(desk, parameters.get("reason", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which jobs are meant: those that match `chosen`, or those that `ids` names.

    began: only jobs count that were in their state by then, so that one which comes back while the
    operation goes on is not taken again.
    """

    verb: str
    began: datetime
    chosen: Filter | None = None
    bindings: Mapping[str, Any]
    ids: Sequence[UUID] = ()

    @property
    def states(self) -> frozenset[State]:
        """The states in which a job is taken."""
        sources = BULK_VERBS[self.verb].sources
        if self.chosen is None:
            return sources
        return states_of(self.chosen, default=sources) & sources

    def jobs(self, database: str) -> QuerySet[Job]:
        """Return the jobs that are meant."""
        jobs = Job.objects.using(database)
        if self.chosen is None:
            return jobs.filter(state_condition(self.states), id__in=self.ids)
        found = matching(jobs, self.chosen, self.began, bindings=self.bindings, default=self.states)
        return found.filter(state_condition(self.states), _by(self.began))


def check_choice(choice: Choice) -> None:
    """Raise InvalidArgument for a filter that means everything, or nothing."""
    if choice.chosen is None:
        return
    sources = ", ".join(state for state in State if state in BULK_VERBS[choice.verb].sources)
    if not choice.chosen.terms:
        raise InvalidArgument(
            f"Say which jobs with a filter, such as state:{sources.split(', ')[0]}."
        )
    if not choice.states:
        raise InvalidArgument(
            f"{choice.verb} is for jobs that are {sources}; the filter names other states only."
        )


def _by(began: datetime) -> Q:
    """Return the condition that a job was in its state by `began`.

    A job that has ended says when. One that waits came by enqueue, or by an attempt's end.
    """
    later = Attempt.objects.filter(job_id=OuterRef("id"), finished_at__gt=began)
    came_back = Q(Exists(later), attempts__gt=0)
    waits = Q(finished_at__isnull=True, enqueued_at__lte=began) & ~came_back
    return Q(finished_at__lte=began) | waits
