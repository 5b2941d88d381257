"""The filter language: how people say which jobs they mean, on every surface.

    state:dead queue:mail error:ValueError created>2026-01-01 -tag:vip "no such order"

Terms stand side by side, and a job has to match all of them.

- ``key:value`` compares, ``key:one,other`` takes either, ``-key:value`` takes what does not match.
- ``key>value``, ``>=``, ``<``, ``<=`` for numbers and times.
- ``args.user_id:42`` looks into the arguments, also into those given by position.
- Anything else is text that task, error or reason contain; an id finds that job, and only that.
- Quotes keep spaces, commas and signs together: ``message:"no such order"``.
- ``*`` at either end of a value stands for anything: ``queue:mail*``.

A filter that names no state looks at jobs that are live or dead; ``state:any`` looks at all. So a
query reads the indexes of those states and not the history.

`parse` is pure and raises `InvalidFilter`, which knows the place; ``str()`` of a filter is its
canonical text, which parses to the same. `matching` makes the query.
"""

from jobqueue.filters.arguments import bindings_of
from jobqueue.filters.keys import KEYS, STATE_GROUPS
from jobqueue.filters.privacy import Refusal, refusal_of, shown_filter
from jobqueue.filters.query import DEFAULT_STATES, matching, states_of
from jobqueue.filters.syntax import parse, term
from jobqueue.filters.terms import Filter, Term, Value
from jobqueue.filters.times import pinned

__all__ = [
    "DEFAULT_STATES",
    "KEYS",
    "STATE_GROUPS",
    "Filter",
    "Refusal",
    "Term",
    "Value",
    "bindings_of",
    "matching",
    "parse",
    "pinned",
    "refusal_of",
    "shown_filter",
    "states_of",
    "term",
]
