"""What a filter would tell whoever may not see it: a list that changes with the guess tells."""

from __future__ import annotations

from uuid import UUID

from jobqueue.filters.terms import ARGS, Term
from jobqueue.redaction import is_secret_name


def is_kept_secret(term: Term) -> bool:
    """Return whether a term is about an argument whose name says that nobody is to see it."""
    return term.key == ARGS and any(is_secret_name(name) for name in term.path)


def tells_payload(term: Term) -> bool:
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
