"""Checks of one TASKS alias: its options, its queues, and what they name. No database is asked."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connections
from django.utils.module_loading import import_string

from jobqueue.checks.mail import check_mail
from jobqueue.checks.schedules import check_schedules
from jobqueue.conf import MAX_QUEUE_NAME_LENGTH, OptionProblem, Options, parse
from jobqueue.storage import Storage

VENDORS = ("postgresql", "sqlite")
MIN_BUSY_SECONDS = 5.0
"""A writer waits this long at least for SQLite's one write lock before it gives up."""
UTC_NAMES = frozenset({"UTC", "UCT", "GMT", "Greenwich", "Universal", "Zulu"})
"""Names of the zone that is UTC at any time, also behind "Etc/"."""
REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


def check_backend(backend: Any) -> list[CheckMessage]:
    """Return what is wrong with a JobQueueBackend's settings; never raise."""
    alias, raw = backend.alias, backend.options
    if not isinstance(raw, Mapping):
        return [_error("E001", alias, "OPTIONS must be a dict.", "Write 'OPTIONS': {…}.")]
    options, problems = parse(raw)
    schedules = () if problems else check_schedules(alias)
    return [
        *(_option_problem(alias, problem, options) for problem in problems),
        *_paths(alias, options),
        *_queues(alias, backend),
        *_database(alias, options),
        *_hints(alias, options),
        *_switches(alias, options),
        *check_mail(alias, backend, options),
        *schedules,
    ]


# --- options -------------------------------------------------------------------------------------


def _option_problem(alias: str, problem: OptionProblem, options: Options) -> CheckMessage:
    text = f"OPTIONS: {problem.option} {problem.message}"
    if problem.option == "HEARTBEAT_SECONDS" and problem.message.startswith("("):
        most = options.lease_seconds / 3
        hint = f"Set HEARTBEAT_SECONDS to at most {most:g}, or LEASE_SECONDS to at least "
        return _error("E002", alias, text, f"{hint}{options.heartbeat_seconds * 3:g}.")
    return _error("E001", alias, text, _option_hint(str(problem.option)))


def _option_hint(name: str) -> str:
    known = {field.name.upper(): field.metadata["doc"] for field in fields(Options)}
    if name in known:
        return f"{name}: {known[name]}"
    alike = difflib.get_close_matches(name.upper(), known, n=1)
    return f"Did you mean {alike[0]}?" if alike else f"Remove {name}."


def _paths(alias: str, options: Options) -> Iterator[CheckMessage]:
    for path in options.imports:
        if (why := _import_failure(import_module, path)) is not None:
            yield _path_error(alias, "IMPORTS", path, why)
    for path in options.middleware:
        if (why := _import_failure(import_string, path)) is not None:
            yield _path_error(alias, "MIDDLEWARE", path, why)
        elif not callable(import_string(path)):
            yield _path_error(alias, "MIDDLEWARE", path, "it is not callable")
    if options.storage is not None:
        why = _import_failure(import_string, options.storage)
        if why is None and not _is_storage(import_string(options.storage)):
            why = "it is not a subclass of jobqueue.storage.Storage"
        if why is not None:
            yield _path_error(alias, "STORAGE", options.storage, why)


def _import_failure(load: Any, path: str) -> str | None:
    """Return why `path` cannot be imported, None if it can: any error counts, it is their code."""
    try:
        load(path)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _is_storage(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Storage)


def _path_error(alias: str, option: str, path: str, why: str) -> CheckMessage:
    text = f"OPTIONS: {option} names {path!r}, which cannot be used: {why}."
    return _error("E003", alias, text, "Correct the dotted path, or repair what it imports.")


def _switches(alias: str, options: Options) -> Iterator[CheckMessage]:
    if not options.self_exit:
        yield _warning(
            "W001",
            alias,
            "OPTIONS: SELF_EXIT is off: a worker that lost its lease goes on running its jobs.",
            "Remove SELF_EXIT; only tests that must reach the guard itself need it.",
        )
    if not options.end_sessions:
        yield _warning(
            "W002",
            alias,
            "OPTIONS: END_SESSIONS is off: a frozen worker's session can hold a job's row until "
            "it ends by itself.",
            "Remove END_SESSIONS, unless the database role may not end its own sessions.",
        )


# --- queues --------------------------------------------------------------------------------------


def _queues(alias: str, backend: Any) -> Iterator[CheckMessage]:
    params = getattr(settings, "TASKS", {}).get(alias, {})
    queues = params.get("QUEUES", backend.queues)
    if isinstance(queues, str | bytes | Mapping) or not isinstance(queues, Iterable):
        yield _error(
            "E007",
            alias,
            f"QUEUES must be a list of names, not {queues!r}.",
            "Write 'QUEUES': [\"default\"], or [] to allow any name.",
        )
        return
    for name in queues:
        if not _is_queue_name(name):
            yield _error(
                "E007",
                alias,
                f"QUEUES holds {_shortened(name)}, which cannot be the name of a queue.",
                f"A name is text of 1 to {MAX_QUEUE_NAME_LENGTH} characters without NUL or comma.",
            )


def _is_queue_name(name: object) -> bool:
    if not isinstance(name, str) or "\x00" in name or "," in name:
        return False  # a comma separates names in runworker --queues
    return 1 <= len(name) <= MAX_QUEUE_NAME_LENGTH and name == name.strip()


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


# --- the database, as the settings describe it ---------------------------------------------------


def _database(alias: str, options: Options) -> Iterator[CheckMessage]:
    name = options.database
    if name not in connections.settings:
        yield _error(
            "E004",
            alias,
            f"OPTIONS: DATABASE is {name!r}, which is no alias of DATABASES.",
            f"Use one of {', '.join(map(repr, connections.settings))}.",
        )
        return
    try:
        connection = connections[name]
    except Exception as error:  # a missing driver, a misspelled engine
        yield _error(
            "E005",
            alias,
            f"Database {name!r} cannot be loaded: {error}",
            "Correct its ENGINE, or install its driver (django-jobqueue[postgres]).",
        )
        return
    if connection.vendor not in VENDORS and options.storage is None:
        yield _error(
            "E005",
            alias,
            f"Database {name!r} is {connection.vendor}; jobs need PostgreSQL or SQLite.",
            "Point DATABASE to another alias. Effects are exact only in the database of the jobs.",
        )
    yield from _connection_settings(alias, name, connection.vendor, connection.settings_dict)


def _connection_settings(
    alias: str, name: str, vendor: str, params: Mapping[str, Any]
) -> Iterator[CheckMessage]:
    if not params.get("AUTOCOMMIT", True):
        yield _error(
            "E006",
            alias,
            f"AUTOCOMMIT of database {name!r} is off: atomic() then commits nothing by itself, "
            "so no job could ever succeed.",
            f"Remove AUTOCOMMIT from DATABASES[{name!r}].",
        )
    if vendor == "sqlite":
        yield from _sqlite_zone(alias, name, params)
        yield from _sqlite_settings(alias, name, params.get("OPTIONS") or {})


def _sqlite_zone(alias: str, name: str, params: Mapping[str, Any]) -> Iterator[CheckMessage]:
    """SQLite keeps times without a zone; Django reads them in one, ours are in UTC."""
    zone = (params.get("TIME_ZONE") or "UTC") if settings.USE_TZ else settings.TIME_ZONE
    if zone.removeprefix("Etc/") not in UTC_NAMES:
        yield _error(
            "E014",
            alias,
            f"Django reads the times of SQLite database {name!r} in {zone}; those of jobs are in "
            "UTC, so that every surface would show and compare wrong ones.",
            f"Set USE_TZ to True and remove TIME_ZONE from DATABASES[{name!r}].",
        )


def _sqlite_settings(alias: str, name: str, given: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if str(given.get("transaction_mode") or "").upper() not in ("IMMEDIATE", "EXCLUSIVE"):
        yield _error(
            "E012",
            alias,
            f"SQLite database {name!r} does not begin transactions IMMEDIATE: one that reads and "
            "then writes fails at once if another has written meanwhile.",
            f'Add "transaction_mode": "IMMEDIATE" to DATABASES[{name!r}]["OPTIONS"].',
        )
    timeout = given.get("timeout", MIN_BUSY_SECONDS)  # five seconds are sqlite3's own default
    if isinstance(timeout, int | float) and timeout < MIN_BUSY_SECONDS:
        yield _error(
            "E012",
            alias,
            f"SQLite database {name!r} waits {timeout:g} s for other writers: an atomic job holds "
            "the only write lock for as long as it runs.",
            f'Set "timeout" in DATABASES[{name!r}]["OPTIONS"] to {MIN_BUSY_SECONDS:g} or more.',
        )


# --- hints ---------------------------------------------------------------------------------------


def _hints(alias: str, options: Options) -> Iterator[CheckMessage]:
    has_package = find_spec("redis") is not None  # importing it would slow every command down
    if options.hints == "redis" and not has_package:
        yield _error(
            "E008",
            alias,
            "OPTIONS: HINTS is 'redis', but the package redis is not installed.",
            "Install django-jobqueue[redis], or set HINTS to 'auto'.",
        )
    if options.hints == "redis" and not options.redis_url:
        yield _error(
            "E008",
            alias,
            "OPTIONS: HINTS is 'redis', but there is no REDIS_URL, here or in the environment.",
            "Set REDIS_URL, or set HINTS to 'auto'.",
        )
    if options.hints == "postgres" and _vendor(options.database) == "sqlite":
        yield _error(
            "E008",
            alias,
            "OPTIONS: HINTS is 'postgres', but the database is SQLite.",
            "Set HINTS to 'auto' or 'none'.",
        )
    if options.hints in ("auto", "redis") and options.redis_url:
        yield from _redis(alias, options, has_package)


def _redis(alias: str, options: Options, has_package: bool) -> Iterator[CheckMessage]:
    if not (options.redis_url or "").startswith(REDIS_SCHEMES):
        yield _error(  # the URL itself may hold a password
            "E008",
            alias,
            "OPTIONS: REDIS_URL does not begin with redis://, rediss:// or unix://.",
            "Write it as redis://HOST:PORT/NUMBER.",
        )
    if options.hints == "auto" and not has_package:
        yield _warning(
            "W003",
            alias,
            "There is a REDIS_URL, but the package redis is not installed: hints do not use it.",
            "Install django-jobqueue[redis], or set HINTS to say what you want.",
        )


def _vendor(database: str) -> str | None:
    try:
        return connections[database].vendor
    except Exception:
        return None  # reported as E004 or E005


def _error(number: str, alias: str, text: str, hint: str) -> CheckMessage:
    return Error(f"TASKS[{alias!r}]: {text}", hint=hint, id=f"jobqueue.{number}")


def _warning(number: str, alias: str, text: str, hint: str) -> CheckMessage:
    return Warning(f"TASKS[{alias!r}]: {text}", hint=hint, id=f"jobqueue.{number}")
