"""``jobs reschedule``, ``run-now``, ``prioritize``, ``move``."""

import pytest

from jobqueue.models import Action
from tests.storage.making import claimed, insert, row

COMMANDS = {
    "reschedule": ["--at", "+2h"],
    "run-now": [],
    "prioritize": ["--priority", "7"],
    "move": ["--queue", "mail"],
}


@pytest.mark.parametrize(
    ("name", "says", "check"),
    [
        ("reschedule", "2 rescheduled", {"state": "scheduled"}),
        ("run-now", "2 made due now", {"state": "ready"}),
        ("prioritize", "2 reprioritized", {"priority": 7}),
        ("move", "2 moved", {"queue": "mail"}),
    ],
)
def test_waiting_jobs_are_changed(storage, jobs, name, says, check):
    ids = insert(storage, 2, delay=60.0)
    assert jobs(name, *ids, *COMMANDS[name]).out.strip() == says
    for job_id in ids:
        assert {column: getattr(row(job_id), column) for column in check} == check
    assert Action.objects.get().count == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_running_job_is_refused(storage, jobs, name):
    held = claimed(storage)
    ran = jobs(name, held.id, *COMMANDS[name])
    assert ran.code == 1
    assert str(ran.error) == f"{held.id}: skipped: running. Nothing was changed."


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["reschedule", "--at", "2026-02-30"], "This is no time"),
        (["reschedule"], "--at"),
        (["prioritize", "--priority", "1000"], "-100 to 100"),
        (["move", "--queue", "post"], "it has default, mail"),
        (["move", "--queue", ""], "1 to 128 characters"),
    ],
)
def test_bad_input_changes_nothing(storage, jobs, words, says):
    (job_id,) = insert(storage)
    name, *options = words
    ran = jobs(name, job_id, *options)
    assert ran.code != 0
    assert says in str(ran.error)
    assert row(job_id).version == 1
