"""What a filter would tell whoever may not see it: a list that changes with the guess tells.

    refusal = refusal_of(chosen, may_see_payload)

Every surface on which people choose jobs asks it, whatever the filter is for: a list, a count, a
subscription, or a bulk operation. A shell does not: whoever has one may read the database.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from jobqueue.exceptions import InvalidFilter
from jobqueue.filters.syntax import parse
from jobqueue.filters.terms import ARGS, Filter, Term, Value
from jobqueue.permissions import VIEW_PAYLOAD, permission_for
from jobqueue.redaction import HIDDEN, is_secret_name


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why somebody may not use a filter. permission: what they would need; empty: nobody may."""

    term: Term
    permission: str = ""

    @property
    def subject(self) -> str:
        """The key that is refused; empty for free text."""
        return self.term.name

    def __str__(self) -> str:
        """Return why, for whoever wrote the filter."""
        if not self.permission:
            return f"{self.subject} is kept secret: nobody looks for jobs by it."
        what = self.subject or "free text"
        return f"To look for jobs by {what} needs the permission {self.permission}."


def refusal_of(chosen: Filter, may_see_payload: bool) -> Refusal | None:
    """Return why `chosen` may not be used, None if it may."""
    for term in chosen.terms:
        if _is_kept_secret(term):
            return Refusal(term)
        if not may_see_payload and _tells_payload(term):
            return Refusal(term, permission_for(VIEW_PAYLOAD))
    return None


def shown_filter(text: str, may_see_payload: bool) -> str:
    """Return what is told of a filter that somebody else has used.

    Its values may be arguments or texts of errors, and how many jobs it found stands beside it.
    """
    try:
        chosen = parse(text)
    except InvalidFilter:
        return text if may_see_payload else HIDDEN
    return str(Filter(tuple(_shown(term, may_see_payload) for term in chosen.terms)))


def _shown(term: Term, may_see_payload: bool) -> Term:
    is_hidden = _is_kept_secret(term) or (not may_see_payload and _tells_payload(term))
    return replace(term, values=(Value(HIDDEN),)) if is_hidden else term


def _is_kept_secret(term: Term) -> bool:
    """Return whether a term is about an argument whose name says that nobody is to see it."""
    return term.key == ARGS and any(is_secret_name(name) for name in term.path)


def _tells_payload(term: Term) -> bool:
    """Return whether a term looks into arguments or texts of errors, which need a permission."""
    if term.key:
        return term.key in (ARGS, "message")
    return not _is_id(term.values[0].text)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
