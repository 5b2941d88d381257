"""Writing many rows in one statement, of which the database may refuse some.

One NUL in one result, one constraint of a project's that one job breaks, must not stop two hundred
others: a statement that is refused is sent again in halves, until the bad row stands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db import DatabaseError

from jobqueue.storage.errors import is_away


def write_in_halves[T](
    part: Sequence[T],
    write: Callable[[Sequence[T]], None],
    refused: Callable[[T, DatabaseError], None],
) -> None:
    """Call `write` with all of `part`, or as many times as it takes to leave out what is refused.

    refused: called with each row that is refused alone, and why. Raise the error if the database
    is away: what was written before stands.
    """
    try:
        write(part)
        return
    except DatabaseError as error:
        if is_away(error):
            raise
        if len(part) == 1:
            refused(part[0], error)
            return
    middle = len(part) // 2
    write_in_halves(part[:middle], write, refused)
    write_in_halves(part[middle:], write, refused)
