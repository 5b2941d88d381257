"""A job's life, the newest first: attempts, what operators did, its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from jobqueue.admin import marks, words
from jobqueue.states import FAILURES, State

Moment = tuple[datetime, dict[str, Any]]
TURNS = frozenset({"requeue", "discard", "cancel"})
"""What operators do to a job that does not run; the first two to one that has died."""


def timeline(job: Any, attempts: Sequence[Any], actions: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what happened, the newest first, as `attempts` are: a time, a word and a text each."""
    found = [_entry(job.enqueued_at, "enqueued", _("Enqueued"))]
    if job.run_at and _aware(job.run_at) > _aware(job.enqueued_at):
        found.append(_entry(job.run_at, "scheduled", _("Due")))
    found += [_of_attempt(attempt) for attempt in reversed(attempts)]
    found += [_entry(at, State.DEAD, _("Ended")) for at in _earlier_deaths(job, attempts, actions)]
    found += [_of_action(action) for action in reversed(actions)]
    if job.claimed_at is not None:
        found.append(_entry(job.claimed_at, "running", _("Claimed; running now")))
    if job.finished_at is not None:
        found.append(_entry(job.finished_at, job.state, _("Ended")))
    oldest_first = [entry for _at, entry in sorted(found, key=lambda each: each[0])]
    return oldest_first[::-1]  # what happened at one moment, too


def _earlier_deaths(
    job: Any, attempts: Sequence[Any], actions: Sequence[Any]
) -> Iterator[datetime]:
    """Yield when a job died that has lived on: requeued by somebody, or by a bulk operation.

    The latter leaves no action of the job: that it went on after all its attempts tells of it.
    """
    oldest_first = attempts[::-1]
    starts = [attempt.started_at for attempt in oldest_first[1:]]
    failures, all_known = 0, job.attempts == len(attempts)
    for attempt, next_start in zip_longest(oldest_first, starts):
        failures += attempt.charged
        turns = [
            action.verb
            for action in reversed(actions)
            if action.verb in TURNS
            and action.at >= attempt.finished_at
            and (next_start is None or action.at < next_start)
        ]
        lives_on = next_start is not None or job.state != State.DEAD
        is_spent = all_known and lives_on and failures == job.max_attempts
        if attempt.outcome in FAILURES and (turns[:1] in (["requeue"], ["discard"]) or is_spent):
            yield attempt.finished_at
            failures = 0


def _of_attempt(attempt: Any) -> Moment:
    took = marks.span((attempt.finished_at - attempt.started_at).total_seconds())
    text = _("Attempt %(number)s ended after %(took)s") % {"number": attempt.number, "took": took}
    return _entry(attempt.finished_at, attempt.outcome, text)


def _of_action(action: Any) -> Moment:
    who = {"verb": words.verb(action.verb), "actor": marks.visible(marks.cut(action.actor, 60))}
    return _entry(action.at, "info", _("%(verb)s, by %(actor)s") % who)


def _entry(at: datetime, state: str, text: str) -> Moment:
    shown = {"at": marks.moment(at), "badge": marks.badge(state), "text": text}
    return _aware(at), shown


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if timezone.is_naive(at) else at
