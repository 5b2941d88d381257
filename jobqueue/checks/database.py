"""Checks that ask the database: whether it keeps what it acknowledges, and for how long it waits.

They read the settings of the session that Django opens for the alias, so what the role, the
OPTIONS of DATABASES or an init_command set counts too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connections

from jobqueue.checks.backend import MIN_BUSY_SECONDS
from jobqueue.conf import Options, parse
from jobqueue.events import line_of
from jobqueue.storage import Storage, storage_for

OLDEST_POSTGRES = 15
SERVER_TIMEOUTS = {
    "statement_timeout": "ends a statement",
    "idle_in_transaction_session_timeout": "ends the session of a job that computes",
    "transaction_timeout": "ends the transaction of an atomic job",
}
"""Server settings, in milliseconds (0: off), that must not be shorter than a job may run."""
SQLITE_SYNCHRONOUS = {"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}


def check_database(alias: str, databases: Collection[str]) -> list[CheckMessage]:
    """Return what is wrong with the database of TASKS alias `alias`, if it is in `databases`."""
    raw = settings.TASKS[alias].get("OPTIONS", {})
    options, _ = parse(raw if isinstance(raw, Mapping) else {})
    if options.database not in databases or options.database not in connections.settings:
        return []
    try:
        storage = storage_for(connections[options.database])
        found = storage.database_settings()
        if storage.vendor == "postgresql":
            return [*_postgres(options, storage, found)]
        return [*_sqlite(options, found, is_memory=_is_in_memory(storage))]
    except Exception as error:  # no server, no such database: not for a check to fail on
        return [
            Warning(
                f"The settings of database {options.database!r} could not be read: "
                f"{line_of(error)}",
                hint="Check again once the database answers.",
                id="jobqueue.W023",
            )
        ]


# --- PostgreSQL ----------------------------------------------------------------------------------


def _postgres(
    options: Options, storage: Storage, found: Mapping[str, str]
) -> Iterator[CheckMessage]:
    name = options.database
    version = found.get("server_version", "")
    number = re.match(r"\d+", version)  # "18.4 (Debian 18.4-1)", "19beta1"
    if number and int(number.group()) < OLDEST_POSTGRES:
        yield Error(
            f"Database {name!r} is PostgreSQL {version}; jobs need {OLDEST_POSTGRES} or newer.",
            hint="Upgrade the server.",
            id="jobqueue.E020",
        )
    if not options.accept_loss:
        yield from _postgres_durability(name, found)
    if found.get("full_page_writes") == "off":
        yield Warning(
            f"Database {name!r} has full_page_writes off: a power cut can tear pages that no "
            "recovery repairs.",
            hint="Turn it on, unless the file system writes whole pages (ZFS).",
            id="jobqueue.W020",
        )
    yield from _server_timeouts(options, found)
    yield from _pooler(options, storage)


def _postgres_durability(name: str, found: Mapping[str, str]) -> Iterator[CheckMessage]:
    for setting in ("synchronous_commit", "fsync"):
        if found.get(setting) == "off":
            yield Error(
                f"Database {name!r} has {setting} off: a crash of the server loses jobs that were "
                "accepted and effects that were committed.",
                hint=f"Turn {setting} on, or set the option ACCEPT_LOSS to True to live with it.",
                id="jobqueue.E021",
            )


def _server_timeouts(options: Options, found: Mapping[str, str]) -> Iterator[CheckMessage]:
    for setting, does in SERVER_TIMEOUTS.items():
        seconds = int(found.get(setting) or 0) / 1000
        if 0 < seconds < options.timeout:
            yield Warning(
                f"Database {options.database!r} has {setting} {seconds:g} s, which {does} before "
                f"TIMEOUT ({options.timeout:g} s) does.",
                hint=f"Raise {setting} for the role of the workers, or lower TIMEOUT.",
                id="jobqueue.W021",
            )


def _pooler(options: Options, storage: Storage) -> Iterator[CheckMessage]:
    params: Mapping[str, Any] = storage.connection.settings_dict
    if not params.get("DISABLE_SERVER_SIDE_CURSORS") and not storage.is_direct():
        yield Warning(
            f"Database {options.database!r} is reached through a pooler, where a server-side "
            "cursor can be lost between two statements.",
            hint=f"Set DISABLE_SERVER_SIDE_CURSORS to True in DATABASES[{options.database!r}].",
            id="jobqueue.W022",
        )


# --- SQLite --------------------------------------------------------------------------------------


def _is_in_memory(storage: Storage) -> bool:
    is_memory = getattr(storage.connection, "is_in_memory_db", lambda: False)
    return bool(is_memory())


def _sqlite(
    options: Options, found: Mapping[str, str], *, is_memory: bool
) -> Iterator[CheckMessage]:
    name = options.database
    if is_memory:
        return  # it ends with its one process, whatever it is told
    if found["journal_mode"].lower() != "wal":
        yield Error(
            f"SQLite database {name!r} has journal_mode {found['journal_mode']}: readers and the "
            "writer stand in each other's way.",
            hint=_pragma_hint(name, "journal_mode=WAL"),
            id="jobqueue.E022",
        )
    level = SQLITE_SYNCHRONOUS.get(found["synchronous"], found["synchronous"].upper())
    if level not in ("FULL", "EXTRA") and not options.accept_loss:
        yield Error(
            f"SQLite database {name!r} has synchronous {level}: a power cut loses jobs that were "
            "accepted and effects that were committed.",
            hint=_pragma_hint(name, "synchronous=FULL") + " Or set ACCEPT_LOSS to live with it.",
            id="jobqueue.E023",
        )
    if int(found["busy_timeout"]) < MIN_BUSY_SECONDS * 1000:
        yield Error(
            f"SQLite database {name!r} has busy_timeout {found['busy_timeout']} ms: an atomic job "
            "holds the only write lock for as long as it runs.",
            hint=_pragma_hint(name, f"busy_timeout={MIN_BUSY_SECONDS * 1000:.0f}"),
            id="jobqueue.E012",
        )


def _pragma_hint(name: str, pragma: str) -> str:
    return (
        f'Add "PRAGMA {pragma};" to "init_command" in DATABASES[{name!r}]["OPTIONS"], such as '
        '"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;".'
    )
