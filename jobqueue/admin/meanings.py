"""What a verb means for jobs, said before it is done."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from jobqueue.admin import home, marks, words
from jobqueue.conf import options_for
from jobqueue.engine.retention import seconds_kept


def meaning(verb: str, queues: Iterable[str]) -> str:
    """Return what a verb means for jobs of these queues; "" where its name says all."""
    told = str(words.MEANINGS.get(verb, ""))
    return f"{told} {_row_of_cancelled(queues)}" if verb in words.GIVES_UP else told


def _row_of_cancelled(queues: Iterable[str]) -> str:
    retention = options_for(home.alias()).retention
    found = {seconds_kept(retention, "cancelled", queue) for queue in queues}
    if len(found) != 1:
        return _("The row of a cancelled job is deleted when RETENTION says so for its queue.")
    (seconds,) = found
    if seconds is None:
        return _("The row of a cancelled job is kept: RETENTION deletes none.")
    return _("The row of a cancelled job is deleted %(span)s after its end.") % {
        "span": marks.span(seconds)
    }
