"""What can be wrong with the database that slows jobs down, or will stop them."""

from __future__ import annotations

from collections.abc import Iterator

from jobqueue.conf import LONG_TRANSACTION_SECONDS
from jobqueue.engine.counts import Count, numbered
from jobqueue.engine.finding import Finding
from jobqueue.engine.status import Status
from jobqueue.storage.health import HorizonHolder

DEAD_ROWS = 100_000
"""Dead rows from which on claims feel them, if they also outnumber the live ones."""
HELD_TRANSACTIONS = 100_000
"""How far a slot or standby may hold the horizon back before it is named."""
KEPT_LOG_BYTES = 1024**3
"""Log kept for a slot that nobody reads, before it is named: it grows until the disk is full."""


def horizon(current: Status) -> Iterator[Finding]:
    """Whoever keeps dead rows from being removed."""
    holder = current.health.horizon
    named = {transaction.pid for transaction in current.health.open_transactions}
    if holder is None or holder.pid in named or not _is_held_long(holder):
        return
    who = f"{holder.kind} {holder.name}" + (f" (pid {holder.pid})" if holder.pid else "")
    if holder.seconds is None:
        sentence = f"A {who} holds back the removal of dead rows by "
        sentence += f"{numbered(holder.transactions, 'transaction')}, so claims slow down."
        way_out = "Let its reader catch up, or drop it."
    else:
        sentence = f"A transaction has been open for {holder.seconds:.0f} s: {who}. While it is, "
        sentence += "dead rows stay and claims slow down."
        way_out = "End what holds it open, or the session itself."
    yield Finding(
        code="horizon_held",
        severity="warning",
        sentence=sentence,
        way_out=way_out,
        subject=holder.name,
        seconds=holder.seconds,
    )


def _is_held_long(holder: HorizonHolder) -> bool:
    if holder.seconds is None:
        return holder.transactions > HELD_TRANSACTIONS
    return holder.seconds > LONG_TRANSACTION_SECONDS


def open_transactions(current: Status) -> Iterator[Finding]:
    """Jobs whose transaction is open for long."""
    for one in current.health.open_transactions:
        yield Finding(
            code="long_transaction",
            severity="warning",
            sentence=f"A job of worker {one.worker} has had its transaction open for "
            f"{one.seconds:.0f} s (pid {one.pid}, {one.state}): it holds its locks, and dead rows "
            "stay.",
            way_out="Make a long job atomic=False and end it with context.commit.",
            subject=str(one.worker),
            seconds=one.seconds,
        )


def dead_rows(current: Status) -> Iterator[Finding]:
    """More dead rows than live ones."""
    table = current.health.table
    if table is not None and table.dead_rows > max(DEAD_ROWS, table.live_rows):
        ago = table.vacuumed_ago
        when = "never" if ago is None else f"{round(ago / 60):,} min ago"
        yield Finding(
            code="dead_rows",
            severity="warning",
            sentence=f"The table of jobs holds about {numbered(table.dead_rows, 'dead row')} "
            f"beside {numbered(table.live_rows, 'live one')}; it was vacuumed {when}.",
            way_out="Look for what keeps them (above), else let autovacuum run more often on it.",
            count=Count(table.dead_rows, "estimate"),
            seconds=ago,
        )


def idle_slots(current: Status) -> Iterator[Finding]:
    """Replication slots that nobody reads."""
    for slot in current.health.idle_slots:
        if slot.kept_bytes > KEPT_LOG_BYTES or slot.state in ("unreserved", "lost"):
            yield Finding(
                code="idle_slot",
                severity="warning",
                sentence=f"Nobody reads the replication slot {slot.name}, for which the server "
                f"keeps {slot.kept_bytes / 1024**3:.1f} GiB of log ({slot.state}).",
                way_out="Start its reader, or drop it: SELECT pg_drop_replication_slot(…).",
                subject=slot.name,
            )
