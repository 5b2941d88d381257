"""Faults that only the database knows. They are asked for with ``--database`` and by migrate."""

import pytest
from django.core.checks import run_checks
from django.db import connection, connections

from jobqueue.checks import check_databases
from jobqueue.checks.database import check_database
from jobqueue.storage.postgres import PostgresStorage
from tests.storage.making import run_sql

pytestmark = pytest.mark.django_db(transaction=True)

SAFE_POSTGRES = {
    "server_version": "18.4 (Debian)",
    "synchronous_commit": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
on_postgres = pytest.mark.postgres_only("asks PostgreSQL's settings")
on_sqlite = pytest.mark.sqlite_only("asks SQLite's settings")


def check(settings=None, **options) -> list[str]:
    if settings is not None:
        settings.TASKS = {"default": {**settings.TASKS["default"], "OPTIONS": options}}
    return ids(check_database("default", ["default"]))


def ids(messages) -> list[str]:
    return [message.id.removeprefix("jobqueue.") for message in messages]


@pytest.fixture
def server(monkeypatch):
    """Lets the server say what it would say with other settings, which need a restart."""

    def say(**found):
        monkeypatch.setattr(
            PostgresStorage, "database_settings", lambda self: {**SAFE_POSTGRES, **found}
        )

    say()
    return say


def test_they_are_not_run_unless_a_database_is_named():
    assert not [m for m in run_checks() if m.id.startswith("jobqueue.")]
    assert check_databases(databases=None) == []
    assert check_databases(databases=["other"]) == []


def test_migrate_runs_them(settings, server, monkeypatch):
    server(fsync="off")
    found = [m.id for m in run_checks(databases=["default"])]
    if connection.vendor == "postgresql":
        assert found.count("jobqueue.E021") == 1
    else:
        assert found.count("jobqueue.E023") == 1  # the tests' own files are not synchronous


def test_silent_server_is_a_warning_not_a_crash(monkeypatch):
    from django.db import OperationalError

    def fail(self):
        raise OperationalError("connection refused\nIs the server running?")

    monkeypatch.setattr(PostgresStorage, "database_settings", fail)
    monkeypatch.setattr("jobqueue.checks.database.storage_for", PostgresStorage)
    (message,) = check_database("default", ["default"])
    assert message.id == "jobqueue.W023"
    assert "connection refused" in message.msg
    assert "Is the server" not in message.msg


# --- PostgreSQL -----------------------------------------------------------------------------------


@on_postgres
def test_safe_server_is_fine(server):
    assert check() == []


@on_postgres
@pytest.mark.parametrize("setting", ["synchronous_commit", "fsync"])
def test_server_that_loses_commits_is_refused_unless_that_is_accepted(settings, server, setting):
    server(**{setting: "off"})
    assert check() == ["E021"]
    assert check(settings, ACCEPT_LOSS=True) == []


@on_postgres
def test_setting_of_the_session_counts_whoever_made_it(settings):
    """Here a role or the OPTIONS of DATABASES would have set it."""
    run_sql(connection, "SET synchronous_commit = off")
    try:
        assert "E021" in check()
    finally:
        connection.close()


@on_postgres
def test_torn_pages_are_a_warning(server):
    server(full_page_writes="off")
    assert check() == ["W020"]


@on_postgres
@pytest.mark.parametrize(
    "setting",
    ["statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"],
)
def test_server_that_is_less_patient_than_a_job_is_a_warning(settings, server, setting):
    server(**{setting: "60000"})
    (message,) = check_database("default", ["default"])
    assert message.id == "jobqueue.W021"
    assert f"{setting} 60 s" in message.msg
    assert check(settings, TIMEOUT=60) == []


@on_postgres
@pytest.mark.parametrize(("version", "expected"), [("14.9", ["E020"]), ("15beta1", []), ("15", [])])
def test_old_server_is_refused(server, version, expected):
    server(server_version=version)
    assert check() == expected


@on_postgres
def test_pooler_needs_server_side_cursors_off(settings, server, monkeypatch):
    monkeypatch.setattr(PostgresStorage, "is_direct", lambda self: False)
    assert check() == ["W022"]
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    assert check() == []


@on_postgres
def test_real_server_answers_all_that_is_asked():
    """The tests' server does not write to disk for durability, and nothing else is wrong."""
    found = PostgresStorage(connection).database_settings()
    assert set(SAFE_POSTGRES) <= set(found)
    assert set(check()) <= {"E021", "W020"}


# --- SQLite ---------------------------------------------------------------------------------------


@pytest.fixture
def pragmas():
    """Sets pragmas of Django's session; it is closed afterwards."""

    def run(*statements):
        for statement in statements:
            run_sql(connection, f"PRAGMA {statement}")

    yield run
    connection.close()


@on_sqlite
def test_durable_file_is_fine(pragmas):
    pragmas("synchronous = FULL")
    assert check() == []
    pragmas("synchronous = EXTRA")
    assert check() == []


@on_sqlite
@pytest.mark.parametrize("level", ["OFF", "NORMAL"])
def test_file_that_loses_commits_is_refused_unless_that_is_accepted(settings, pragmas, level):
    pragmas(f"synchronous = {level}")
    (message,) = check_database("default", ["default"])
    assert message.id == "jobqueue.E023"
    assert level in message.msg
    assert check(settings, ACCEPT_LOSS=True) == []


@on_sqlite
def test_file_without_write_ahead_log_is_refused(pragmas):
    pragmas("synchronous = FULL", "journal_mode = DELETE")
    try:
        (message,) = check_database("default", ["default"])
    finally:
        pragmas("journal_mode = WAL")
    assert message.id == "jobqueue.E022"
    assert "PRAGMA journal_mode=WAL" in message.hint


@on_sqlite
def test_impatient_session_is_refused(pragmas):
    pragmas("synchronous = FULL", "busy_timeout = 4999")
    assert check() == ["E012"]


@on_sqlite
def test_database_in_memory_is_not_asked_to_be_durable(pragmas, monkeypatch):
    monkeypatch.setattr(type(connections["default"]), "is_in_memory_db", lambda self: True)
    assert check() == []
