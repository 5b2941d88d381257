"""Requests that may be repeated: done once, answered alike each time.

    given = once(desk, request, run)      # run makes the jobs, and says what to answer

The answer is written in the transaction of what it tells of, and `once` returns after its COMMIT
has returned: an answer that says yes is never given for what may still vanish. A request with the
same key and body gets that answer again, byte for byte, for IDEMPOTENCY_HOURS at least and
whatever becomes of the jobs. With another body: IdempotencyKeyReused. While the first has not
ended: the second waits for a second, then IdempotencyKeyInProgress. A request that is refused or
fails leaves nothing, and its key is free.

A key belongs to a caller and a route: nobody meets another's. Bodies are compared in a canonical
form (`fingerprint`): neither white space nor the order of an object's names counts; 1, 1.0, true
and "1" are four values, and so are composed and decomposed letters.

The transaction is our own, READ COMMITTED whatever the project sets, with a bound on each wait for
a lock; after a serialization failure or deadlock all of it is run again. It must be the outermost:
inside one that is open already (ATOMIC_REQUESTS without our exemption, a middleware's `atomic`)
the COMMIT would come after the answer, so `once` raises TransactionOpen before any statement. The
transaction of a TestCase, which never commits, is let through, as Django does for `durable`.

What a process leaves behind that dies, or whose session is cut …

- before BEGIN has arrived: nothing.
- after it, up to the last statement before COMMIT (bounds set, key claimed, jobs inserted, Action
  row and answer written): an open transaction, which the server rolls back: at once if it sees the
  session end, after REQUEST_IDLE_SECONDS if the process is frozen or its host has vanished. Until
  then a repeat waits for the key, then gets IdempotencyKeyInProgress; after that it is the first.
- while COMMIT is on its way: all or nothing, as the server decides. The client gets no yes (here:
  DatabaseUnavailable, or no answer at all), repeats, and meets the key with its answer, or no key
  and no job.
- after COMMIT, before the answer is sent: the jobs and the answer, which the repeat is given.
  Hints are lost, and workers find the jobs by their poll; `job.enqueued` events are lost.

On SQLite the transaction holds the write lock from its beginning: others wait for that as for any
writer, and a process that dies leaves a journal that the next one rolls back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from django.db import DatabaseError, InterfaceError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.conf import REQUEST_TRIES, REQUEST_WAIT_SECONDS
from jobqueue.engine.operations import Desk
from jobqueue.engine.proof import IN_FAILED_TRANSACTION, is_serialization_failure
from jobqueue.exceptions import (
    DatabaseUnavailable,
    IdempotencyKeyInProgress,
    IdempotencyKeyReused,
    InvalidIdempotencyKey,
    RowLocked,
    TransactionOpen,
)
from jobqueue.models.idempotency_key import MAX_CALLER_LENGTH, MAX_KEY_LENGTH, MAX_ROUTE_LENGTH
from jobqueue.payload import canonical
from jobqueue.storage import Storage
from jobqueue.storage.busy import is_busy, persistently
from jobqueue.storage.errors import LOCK_NOT_AVAILABLE, may_pass, sqlstate
from jobqueue.storage.records import Deed, RequestKey, StoredAnswer

_ESCAPED = re.compile(r'\\(["\\])')
_IN_ERROR = 3
"""Of libpq's PGTransactionStatusType: a statement has failed, and COMMIT would roll back."""


class Done(NamedTuple):
    """What a request has done: its answer, and its Action row, if it changed anything."""

    answer: StoredAnswer
    deed: Deed | None = None


Run = Callable[[Storage], Done]


class Given(NamedTuple):
    """The answer to give. is_replay: it was made for an earlier request."""

    answer: StoredAnswer
    is_replay: bool


def request_key(caller: str, route: str, key: str, body: Mapping[str, Any]) -> RequestKey:
    """Return who asks for what under which key; raise InvalidIdempotencyKey, or as `fingerprint`.

    caller: text that no other caller ever has, such as "user:7". route: what is asked for.
    """
    if not 0 < len(caller) <= MAX_CALLER_LENGTH or not 0 < len(route) <= MAX_ROUTE_LENGTH:
        raise ValueError(f"A caller or route cannot be stored: {caller!r:.300}, {route!r:.100}")
    return RequestKey(caller, route, checked_key(key), fingerprint(body))


def checked_key(text: str) -> str:
    """Return an idempotency key as it was sent, without the quotes that its draft standard has.

    Raise InvalidIdempotencyKey unless it is 1 to 255 printable ASCII characters; none is cut.
    (draft-ietf-httpapi-idempotency-key-header: a String of RFC 9651; most clients send it bare.)
    """
    key = text.strip(" \t")
    if len(key) >= 2 and key[0] == key[-1] == '"':
        key = _ESCAPED.sub(r"\1", key[1:-1])
    if not 0 < len(key) <= MAX_KEY_LENGTH or not (key.isascii() and key.isprintable()):
        raise InvalidIdempotencyKey(
            f"An idempotency key is 1 to {MAX_KEY_LENGTH} printable ASCII characters, such as a "
            f"random UUID; this one has {len(key):,} characters."
        )
    return key


def fingerprint(body: Mapping[str, Any]) -> str:
    """Return 64 hex digits that are equal for bodies that mean the same.

    Raise InvalidArgument or UnsupportedType for what JSON or a database cannot hold.
    """
    return hashlib.sha256(canonical(body).encode()).hexdigest()


def once(desk: Desk, request: RequestKey | None, run: Run) -> Given:
    """Return the answer kept for `request`, else that of ``run(storage)``, once it is committed.

    Without a request (no key was sent) it is run each time, with the same promise about the
    COMMIT. Raise IdempotencyKeyReused, IdempotencyKeyInProgress, RowLocked, TransactionOpen,
    DatabaseUnavailable, or what `run` raises.
    """
    try:
        return persistently(lambda: _repeated(desk, request, run), REQUEST_WAIT_SECONDS)
    except (DatabaseError, InterfaceError) as error:
        refusal = _refusal(error, request is not None)
        if refusal is None:
            raise
        raise refusal from error


def _repeated(desk: Desk, request: RequestKey | None, run: Run) -> Given:
    """Run the whole transaction until it meets no conflict, some times at most."""
    connection = connections[desk.database]
    for _ in range(REQUEST_TRIES - 1):
        try:
            given = _in_one_transaction(desk, connection, request, run)
        except OperationalError as error:
            if not is_serialization_failure(error) or connection.in_atomic_block:
                raise
        else:
            if given is not None:
                return given
    given = _in_one_transaction(desk, connection, request, run)
    if given is None:
        raise _in_progress()
    return given


def _in_one_transaction(
    desk: Desk, connection: BaseDatabaseWrapper, request: RequestKey | None, run: Run
) -> Given | None:
    """Return the answer, after the COMMIT; None if the key's row was deleted as we met it."""
    with _outermost(connection):
        storage = desk.storage()
        if not connection.savepoint_ids:  # else in a TestCase's, which has begun already
            storage.begin_request()
        number = None if request is None else _claimed(desk, storage, request)
        if request is not None and number is None:
            return _kept(storage, request)
        done = run(storage)
        if number is not None:
            storage.keep_answer(number, done.answer, done.deed)
        elif done.deed is not None:
            storage.record_action(done.deed)
        _check_commit(connection)
    return Given(done.answer, False)


def _claimed(desk: Desk, storage: Storage, request: RequestKey) -> int | None:
    try:
        return storage.claim_request(request, desk.options.idempotency_hours * 3_600)
    except OperationalError as error:
        if sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        raise _in_progress() from error


def _check_commit(connection: BaseDatabaseWrapper) -> None:
    """Raise RuntimeError where leaving the block would roll back without a word.

    Code of others may have run in it (receivers of task_enqueued), and swallowed an error.
    """
    info = getattr(connection.connection, "info", None)
    if connection.needs_rollback or (info and int(info.transaction_status) == _IN_ERROR):
        raise RuntimeError(
            "The transaction of this request can only be rolled back: perhaps a receiver of "
            "task_enqueued went on after a database error. Nothing was enqueued."
        )


def _kept(storage: Storage, request: RequestKey) -> Given | None:
    found = storage.find_request(request)
    if found is None:
        return None
    if found.fingerprint != request.fingerprint:
        raise IdempotencyKeyReused(
            "This idempotency key came with another request before. Use a new key for a new "
            "request; to repeat one, send the very same body."
        )
    if found.answer is None:
        raise _in_progress()
    return Given(found.answer, True)


@contextmanager
def _outermost(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """A transaction whose COMMIT comes at the end of this block; on SQLite a writing one."""
    if not connection.in_atomic_block and not connection.get_autocommit():
        raise _transaction_open(connection.alias)  # and nobody would commit it
    with ExitStack() as stack:
        if connection.vendor == "sqlite":
            stack.enter_context(_write_lock_first(connection))
        try:
            stack.enter_context(transaction.atomic(using=connection.alias, durable=True))
        except RuntimeError as error:
            raise _transaction_open(connection.alias) from error
        yield


@contextmanager
def _write_lock_first(connection: Any) -> Iterator[None]:
    mode = connection.transaction_mode
    connection.transaction_mode = "IMMEDIATE"
    try:
        yield
    finally:
        connection.transaction_mode = mode


def _transaction_open(database: str) -> TransactionOpen:
    return TransactionOpen(
        f"A transaction is open on database {database!r} around this request, perhaps by a "
        "middleware, so its answer would come before the COMMIT. Nothing was enqueued. Leave "
        "this path out there; ATOMIC_REQUESTS does so by itself."
    )


def _refusal(error: Exception, has_key: bool) -> Exception | None:
    """Return what a database error comes to for the caller; None: the fault is ours."""
    is_locked = sqlstate(error) == LOCK_NOT_AVAILABLE or is_busy(error)
    if is_locked or is_serialization_failure(error):
        return RowLocked("Others hold locks on what this needs. Nothing was changed; try again.")
    if sqlstate(error) == IN_FAILED_TRANSACTION or not may_pass(error):
        return None  # the former: somebody's receiver went on after an error
    way_out = (
        "Repeat it as it is, with the same idempotency key."
        if has_key
        else "Look before you repeat it, and send an idempotency key next time."
    )
    return DatabaseUnavailable(
        f"The database did not confirm this request: it may or may not have been done. {way_out}"
    )


def _in_progress() -> IdempotencyKeyInProgress:
    return IdempotencyKeyInProgress(
        "A request with this idempotency key is still in progress. Repeat this one in a moment."
    )
