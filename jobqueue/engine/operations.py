"""How an operation is carried out: who did it, in one transaction, and what became of each row.

Every change by an operator is a compare-and-set that waits for no row lock. Rows that somebody
holds are tried again a few times, then reported; rows that moved on are reported as what they
are now. The change and its Action row are one transaction: neither stands without the other.

Inside the caller's transaction (ATOMIC_REQUESTS, a test) an operation stands and falls with it
and nothing is repeated after an error. In a transaction of its own it runs at READ COMMITTED,
whatever the project sets, and is run again after a serialization failure or a lock time-out.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from uuid import UUID

from django.db import OperationalError, connections, transaction
from django.db.models.functions import Now

from jobqueue.conf import Options, options_for
from jobqueue.engine.announce import announce
from jobqueue.engine.proof import is_serialization_failure
from jobqueue.exceptions import InvalidArgument, RowLocked
from jobqueue.models import Action
from jobqueue.storage import Storage, storage_for
from jobqueue.storage.busy import is_busy, is_foreign
from jobqueue.storage.errors import LOCK_NOT_AVAILABLE, sqlstate

MAX_ROWS = 1_000
"""Jobs changed in one transaction: short enough that no worker waits, small enough to undo."""
LOCK_TRIES = 4
LOCK_PAUSE_SECONDS = 0.05
"""A worker's own transaction about a job ends within some milliseconds, or holds it for long:
trying a few times meets the first kind and does not wait for the second."""
ASKED = "asked"
"""What happened to a running job that only its worker can change: a request was left for it."""
LOCK_WAIT_SECONDS = 2.0
"""No statement of an operation waits longer for a lock (two operators who touch one queue)."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something, and through which surface: shell, admin, api or page."""

    SURFACES: ClassVar[frozenset[str]] = frozenset({"shell", "admin", "api", "page"})

    name: str
    surface: str

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 255 or "\x00" in self.name:
            raise InvalidArgument("The actor's name must have 1 to 255 characters.")
        if self.surface not in self.SURFACES:
            raise InvalidArgument(f"The surface must be one of {', '.join(sorted(self.SURFACES))}.")


@dataclass(frozen=True)
class Outcome:
    """What an operation did: `counts` by what happened, and what happened to each id.

    done: the word for a change that was made, such as "requeued". The others are "asked" (a
    running job, to be cancelled), "locked", "not found", "refused" (by a constraint of the
    database) and "skipped: STATE". `results` is empty where nobody gave ids (prune).
    """

    done: str
    results: Mapping[UUID, str] = field(default_factory=dict)
    given_counts: Mapping[str, int] | None = None

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many, by what happened; what was done comes first."""
        counted = Counter(self.results.values()) if self.given_counts is None else self.given_counts
        return dict(sorted(counted.items(), key=lambda item: (item[0] != self.done, item[0])))

    @property
    def changed(self) -> int:
        """How many rows were changed, or asked to change."""
        return self.counts.get(self.done, 0) + self.counts.get(ASKED, 0)

    def __str__(self) -> str:
        """Return for example "12 requeued, 3 skipped: running"."""
        return ", ".join(f"{n} {what}" for what, n in self.counts.items()) or f"0 {self.done}"

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.done, {**self.results, **other.results})


@dataclass(frozen=True, slots=True)
class Desk:
    """Where an operation is done: the actor, and the TASKS alias with its database."""

    actor: Actor
    backend: str

    @property
    def options(self) -> Options:
        return options_for(self.backend)

    @property
    def database(self) -> str:
        return self.options.database

    def storage(self) -> Storage:
        """Return storage on Django's own connection, so that a caller's transaction holds."""
        return storage_for(connections[self.database], self.options)

    def transact[R](self, run: Callable[[Storage], R]) -> R:
        """Return ``run(storage)`` from one transaction; see the module for what is repeated.

        Raise RowLocked if a lock could not be had in all the tries.
        """
        if is_foreign(connections[self.database]):
            with transaction.atomic(using=self.database):
                return run(self.storage())
        for last in (False,) * (LOCK_TRIES - 1) + (True,):
            try:
                with transaction.atomic(using=self.database):
                    storage = self.storage()
                    storage.begin_operation(LOCK_WAIT_SECONDS)
                    return run(storage)
            except OperationalError as error:
                if not (is_busy(error) or _may_pass(error)):
                    raise
                if last or is_busy(error):  # SQLite itself has waited for its busy time-out
                    raise RowLocked("The rows stayed locked; try again.") from error
            time.sleep(LOCK_PAUSE_SECONDS)
        raise AssertionError("the last try returns or raises")

    def record(
        self,
        verb: str,
        count: int,
        *,
        target: str,
        job_id: UUID | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> Action:
        """Write the Action row of a change, in its transaction."""
        return Action.objects.using(self.database).create(
            at=Now(),
            actor=self.actor.name,
            surface=self.actor.surface,
            verb=verb,
            job_id=job_id,
            target=target,
            count=count,
            detail=dict(detail) if detail else None,
        )

    def hint(self, queues: Iterable[str]) -> None:
        """Tell workers, once the outermost transaction has committed, that `queues` have work."""
        announce(connections[self.database], self.backend, queues)

    def after_commit(self, run: Callable[[], object]) -> None:
        """Call `run` once the outermost transaction has committed; its errors are logged."""
        transaction.on_commit(run, using=self.database, robust=True)


def parse_ids(ids: Iterable[UUID | str]) -> list[UUID]:
    """Return `ids` as UUIDs, ascending (the order of locks) and each once.

    Raise InvalidArgument, naming each that is none: nothing has been changed then.
    """
    parsed: set[UUID] = set()
    malformed: list[str] = []
    for given in ids:
        try:
            parsed.add(given if isinstance(given, UUID) else UUID(given))
        except (ValueError, AttributeError, TypeError):
            malformed.append(repr(given))
    if malformed:
        raise InvalidArgument(
            f"Not the id of a job: {', '.join(malformed[:5])}. "
            "An id looks like 01890a5d-ac96-774b-bcce-b302099a8057."
        )
    return sorted(parsed)


def _may_pass(error: OperationalError) -> bool:
    """Return whether the same operation may succeed a moment later."""
    return sqlstate(error) == LOCK_NOT_AVAILABLE or is_serialization_failure(error)
