"""Faults of one TASKS alias, each shown to the check that must name it. No database is asked."""

import sys

import pytest
from django.core.checks import run_checks

from jobqueue.backend import JobQueueBackend
from jobqueue.checks import check_backend
from jobqueue.conf import DEFAULT_RETENTION, Options

# Whoever asks a database here fails: these checks run where there is none.


def check(settings, options=None, alias="default", **params):
    """Return the messages about a backend with these settings."""
    tasks = {"BACKEND": "jobqueue.backend.JobQueueBackend", "OPTIONS": options or {}, **params}
    settings.TASKS = {alias: tasks}
    return check_backend(JobQueueBackend(alias, tasks))


def ids(messages) -> list[str]:
    return [message.id.removeprefix("jobqueue.") for message in messages]


@pytest.fixture(autouse=True)
def no_redis_in_the_environment(monkeypatch):
    monkeypatch.delenv("REDIS_URL", raising=False)


def test_defaults_are_fine(settings):
    assert check(settings) == []


def test_every_message_names_the_alias_and_says_what_to_do(settings):
    messages = check(settings, {"BATHC": 1, "SELF_EXIT": False}, alias="mail", QUEUES=[""])
    assert ids(messages) == ["E001", "E007", "W001"]
    for message in messages:
        assert message.msg.startswith("TASKS['mail']")
        assert message.hint


def test_unknown_option_is_named_with_what_was_meant(settings):
    (message,) = check(settings, {"BATHC": 100})
    assert message.id == "jobqueue.E001"
    assert "BATHC" in message.msg
    assert message.hint == "Did you mean BATCH?"


WRONG = {
    "DATABASE": 7,
    "MAX_ATTEMPTS": 0,
    "RETRY": {"frist": 5},
    "TIMEOUT": float("inf"),
    "LEASE_SECONDS": "15",
    "HEARTBEAT_SECONDS": True,
    "POLL_SECONDS": 0,
    "BATCH": 0,
    "GRACE_SECONDS": -1,
    "SCHEDULES": {"report": {}},
    "QUEUE_LIMITS": {"mail": {"running": 5, "key": "{order_id}"}},
    "SUSPICIONS": 1.5,
    "AGING_SECONDS": float("nan"),
    "MAX_ARGUMENTS_BYTES": None,
    "MAX_RESULT_BYTES": -1,
    "MAX_TRACEBACK_BYTES": 10,
    "EMAIL_BACKEND": None,
    "EMAIL_QUEUE": "",
    "LOG_LINES": 1.5,
    "RETENTION": {"running": 1},
    "ACTION_RETENTION": 60,
    "SCRUB_ARGUMENTS": -1,
    "IDEMPOTENCY_HOURS": 0,
    "ACCEPT_LOSS": "no",
    "HINTS": "carrier pigeon",
    "REDIS_URL": "",
    "IMPORTS": "shop.tasks",
    "MIDDLEWARE": [7],
    "STORAGE": 7,
    "SELF_EXIT": 1,
    "END_SESSIONS": None,
}


def test_every_option_has_a_wrong_value_here():
    assert set(WRONG) == {name.upper() for name in Options.__dataclass_fields__}


@pytest.mark.parametrize("option", WRONG)
def test_wrong_value_is_named_and_explained(settings, option):
    (message,) = check(settings, {option: WRONG[option]})
    assert message.id == "jobqueue.E001"
    assert f"OPTIONS: {option} " in message.msg
    assert message.hint.startswith(f"{option}: ")


def test_retention_of_a_known_state_is_taken(settings):
    assert check(settings, {"RETENTION": dict.fromkeys(DEFAULT_RETENTION)}) == []


@pytest.mark.parametrize("options", [7, None, [("BATCH", 1)]])
def test_options_that_are_no_dict_are_an_error_not_a_crash(settings, options):
    tasks = {"BACKEND": "jobqueue.backend.JobQueueBackend", "OPTIONS": options}
    settings.TASKS = {"default": tasks}
    assert ids(check_backend(JobQueueBackend("default", tasks))) == ["E001"]


# --- lease and heartbeat --------------------------------------------------------------------------


@pytest.mark.parametrize("heartbeat", [6, 5.01, 15, 30])
def test_heartbeat_over_a_third_of_the_lease_is_refused(settings, heartbeat):
    (message,) = check(settings, {"LEASE_SECONDS": 15, "HEARTBEAT_SECONDS": heartbeat})
    assert message.id == "jobqueue.E002"
    assert "at most 5" in message.hint


def test_lease_shorter_than_the_time_out_of_jobs_is_fine(settings):
    """Long jobs live by renewal, not by a long lease."""
    assert check(settings, {"LEASE_SECONDS": 3, "HEARTBEAT_SECONDS": 1, "TIMEOUT": 3600 * 24}) == []


# --- paths ----------------------------------------------------------------------------------------


@pytest.fixture
def broken_module(monkeypatch):
    """A module that exists and raises when it is imported."""

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "broken_module_of_a_project":
                raise RuntimeError("half a deploy")

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    return "broken_module_of_a_project"


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("MIDDLEWARE", ["no.such.thing"], "No module named 'no'"),
        ("MIDDLEWARE", ["nodots"], "nodots"),
        ("MIDDLEWARE", ["jobqueue.conf.CLAIM_WINDOW"], "not callable"),
        ("IMPORTS", ["no.such.module"], "No module named 'no'"),
        ("STORAGE", "no.such.Storage", "No module named 'no'"),
        ("STORAGE", "jobqueue.conf.Options", "not a subclass"),
    ],
)
def test_path_that_cannot_be_used_is_named(settings, option, value, says):
    (message,) = check(settings, {option: value})
    assert message.id == "jobqueue.E003"
    assert option in message.msg
    assert says in message.msg


def test_error_inside_an_imported_module_is_told(settings, broken_module):
    (message,) = check(settings, {"IMPORTS": [broken_module]})
    assert "RuntimeError: half a deploy" in message.msg


def test_working_paths_are_fine(settings):
    assert (
        check(
            settings,
            {"IMPORTS": ["tests.app.tasks"], "STORAGE": "jobqueue.storage.protocol.Storage"},
        )
        == []
    )


# --- queues ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("queues", ["default", b"x", {"default": 1}])
def test_queues_that_are_no_list_are_refused(settings, queues):
    assert ids(check(settings, QUEUES=queues)) == ["E007"]


@pytest.mark.parametrize("name", ["", "q" * 129, "a\x00", 7, "mail,default", " mail"])
def test_impossible_queue_name_is_refused(settings, name):
    (message,) = check(settings, QUEUES=["default", name])
    assert message.id == "jobqueue.E007"
    assert len(message.msg) < 200


@pytest.mark.parametrize("queues", [[], ["q" * 128], ("default", "größe"), {"default"}])
def test_possible_queue_names_are_fine(settings, queues):
    assert check(settings, QUEUES=queues) == []


# --- the database ---------------------------------------------------------------------------------


def test_missing_database_alias_is_named_with_those_there_are(settings):
    (message,) = check(settings, {"DATABASE": "jobs"})
    assert message.id == "jobqueue.E004"
    assert "'default', 'other'" in message.hint


@pytest.fixture
def connection_as(monkeypatch):
    """Lets the checks see a connection to `default` that has other settings."""

    def pretend(vendor=None, **changes):
        from django.db import connections

        connection = connections["default"]
        if vendor:
            monkeypatch.setattr(type(connection), "vendor", vendor)
        for key, value in changes.items():
            monkeypatch.setitem(connection.settings_dict, key, value)

    return pretend


def test_unsupported_database_is_refused(settings, connection_as):
    connection_as(vendor="oracle")
    (message,) = check(settings)
    assert message.id == "jobqueue.E005"
    assert "oracle" in message.msg


def test_storage_of_the_projects_own_may_support_it(settings, connection_as):
    connection_as(vendor="oracle")
    assert check(settings, {"STORAGE": "jobqueue.storage.protocol.Storage"}) == []


def test_database_whose_driver_is_missing_is_named(settings, monkeypatch):
    from django.db import connections

    def fail(self, alias):
        raise ImportError("No module named 'psycopg'")

    monkeypatch.setattr(type(connections), "__getitem__", fail)
    (message,) = check(settings)
    assert message.id == "jobqueue.E005"
    assert "psycopg" in message.msg


def test_autocommit_off_is_refused(settings, connection_as):
    connection_as(AUTOCOMMIT=False)
    assert ids(check(settings)) == ["E006"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["E012"]),
        ({"transaction_mode": None}, ["E012"]),
        ({"transaction_mode": "DEFERRED"}, ["E012"]),
        ({"transaction_mode": "immediate"}, []),
        ({"transaction_mode": "EXCLUSIVE", "timeout": 20}, []),
        ({"transaction_mode": "IMMEDIATE", "timeout": 4.9}, ["E012"]),
        ({"timeout": 1}, ["E012", "E012"]),
    ],
)
def test_sqlite_needs_immediate_transactions_that_wait(settings, connection_as, options, expected):
    connection_as(vendor="sqlite", OPTIONS=options)
    assert ids(check(settings)) == expected


@pytest.mark.parametrize(
    ("use_tz", "zone", "of_database", "expected"),
    [
        (True, "Europe/Paris", None, []),
        (True, "UTC", "Europe/Paris", ["E014"]),
        (False, "Europe/Paris", None, ["E014"]),
        (False, "Europe/Paris", "UTC", ["E014"]),  # without USE_TZ Django does not ask it
        (False, "Etc/UTC", None, []),
    ],
)
def test_sqlite_needs_times_in_utc(settings, connection_as, use_tz, zone, of_database, expected):
    """It keeps no zone with a time: the ORM would read ours shifted."""
    settings.USE_TZ, settings.TIME_ZONE = use_tz, zone
    connection_as(vendor="sqlite", OPTIONS={"transaction_mode": "IMMEDIATE"}, TIME_ZONE=of_database)
    assert ids(check(settings)) == expected


# --- hints ----------------------------------------------------------------------------------------


@pytest.fixture
def without_redis(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)


def test_redis_without_a_url_is_refused(settings):
    assert ids(check(settings, {"HINTS": "redis"})) == ["E008"]


def test_redis_without_the_package_is_refused(settings, without_redis):
    (message,) = check(settings, {"HINTS": "redis", "REDIS_URL": "redis://h"})
    assert message.id == "jobqueue.E008"
    assert "django-jobqueue[redis]" in message.hint


def test_redis_url_without_the_package_is_a_warning_only(settings, without_redis):
    assert ids(check(settings, {"REDIS_URL": "redis://h"})) == ["W003"]


def test_url_from_the_environment_counts(settings, monkeypatch):
    monkeypatch.setenv("REDIS_URL", "redis://h")
    assert check(settings, {"HINTS": "redis"}) == []


def test_url_of_another_scheme_is_refused_without_its_password(settings):
    (message,) = check(settings, {"REDIS_URL": "https://:hunter2@h"})
    assert message.id == "jobqueue.E008"
    assert "hunter2" not in message.msg + message.hint


def test_notifications_need_postgresql(settings, connection_as):
    connection_as(vendor="sqlite", OPTIONS={"transaction_mode": "IMMEDIATE"})
    assert ids(check(settings, {"HINTS": "postgres"})) == ["E008"]


# --- switches, apps -------------------------------------------------------------------------------


def test_switched_off_protection_is_a_warning(settings):
    assert ids(check(settings, {"SELF_EXIT": False, "END_SESSIONS": False})) == ["W001", "W002"]


def test_django_runs_these_checks(settings):
    settings.TASKS = {
        "default": {**settings.TASKS["default"], "OPTIONS": {"HEARTBEAT_SECONDS": 10}}
    }
    found = [message.id for message in run_checks()]
    assert found.count("jobqueue.E002") == 1
