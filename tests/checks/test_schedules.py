"""Faults of schedules that code declares, each shown to the check that must name it."""

import pytest

from jobqueue.engine import declared
from tests.app.tasks import record
from tests.checks.test_backend import check, ids

REPORT = {"task": "tests.app.tasks.record", "cron": "0 6 * * *"}


@pytest.fixture(autouse=True)
def nothing_beside_tasks(monkeypatch):
    monkeypatch.setattr(declared, "_declared", {})


def test_what_could_tick_is_fine(settings):
    declared.schedule("beside", record, every=60)
    assert check(settings, {"SCHEDULES": {"report": REPORT}}) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"task": "tests.app.tasks.gone"},
        {"task": "os.system"},
        {"args": [1, 2, 3]},
        {"args": [object()]},
        {"queue_name": "nowhere"},
    ],
)
def test_a_schedule_that_could_make_no_job(settings, changes):
    options = {"SCHEDULES": {"report": {**REPORT, **changes}}}
    (message,) = check(settings, options, QUEUES=["default"])
    assert message.id == "jobqueue.E030"
    assert "'report'" in message.msg


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("report", "must be a dict"),
        ({"report": "0 6 * * *"}, "must be a dict"),
        ({"report": {**REPORT, "cron": "0 0 31 2 *"}}, "'report' cron: '0 0 31 2 *'"),
        ({"report": {**REPORT, "crom": 1}}, "'report' crom: is unknown"),
        ({"report": {**REPORT, "time_zone": "Mars/Olympus"}}, "'report' time_zone"),
        ({"a": {**REPORT, "cron": ""}, "b": {**REPORT, "end": "soon"}}, "'b' end"),
    ],
)
def test_a_declaration_that_cannot_be_read(settings, value, text):
    (message,) = check(settings, {"SCHEDULES": value})
    assert message.id == "jobqueue.E001"
    assert text in message.msg


def test_a_time_that_has_passed(settings):
    once = {"task": REPORT["task"], "at": "2020-01-01"}
    assert ids(check(settings, {"SCHEDULES": {"once": once}})) == ["W030"]


def test_a_name_that_is_declared_twice(settings):
    declared.schedule("report", record, every=60)
    assert ids(check(settings, {"SCHEDULES": {"report": REPORT}})) == ["E031"]


def test_a_name_that_two_aliases_of_a_database_declare(settings):
    from jobqueue.checks.schedules import check_schedules

    alias = {"BACKEND": "jobqueue.backend.JobQueueBackend", "OPTIONS": {"SCHEDULES": {"a": REPORT}}}
    settings.TASKS = {"default": alias, "slow": alias}
    assert ids([*check_schedules("default"), *check_schedules("slow")]) == ["E031"]
