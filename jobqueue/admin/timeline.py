"""A job's life, the newest first: attempts, what operators did, its end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from jobqueue.admin import marks, words

Moment = tuple[datetime, dict[str, Any]]


def timeline(job: Any, attempts: Sequence[Any], actions: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what happened, the newest first, as `attempts` are: a time, a word and a text each."""
    found = [_entry(job.enqueued_at, "enqueued", _("Enqueued"))]
    if job.run_at and _aware(job.run_at) > _aware(job.enqueued_at):
        found.append(_entry(job.run_at, "scheduled", _("Due")))
    found += [_of_attempt(attempt) for attempt in reversed(attempts)]
    found += [_of_action(action) for action in reversed(actions)]
    if job.claimed_at is not None:
        found.append(_entry(job.claimed_at, "running", _("Claimed; running now")))
    if job.finished_at is not None:
        found.append(_entry(job.finished_at, job.state, _("Ended")))
    oldest_first = [entry for _at, entry in sorted(found, key=lambda each: each[0])]
    return oldest_first[::-1]  # what happened at one moment, too


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
