"""``jobs enqueue`` and ``jobs run-again``: jobs made from a shell."""

import uuid

import pytest

from jobqueue import task
from jobqueue.models import Action, Job, JobTag
from tests.storage.making import buried, insert, row

HERE = __name__


@task(queue_name="mail")
def send(order_id, to="kim", *, urgent=False):
    pass


def test_job_is_made_and_its_id_printed(jobs):
    ran = jobs("enqueue", f"{HERE}.send", "42", "kim", "--kwarg", "urgent=true", "--actor", "lee")
    job = Job.objects.get()
    assert ran.out.strip() == f"{job.id} is ready."
    assert job.arguments == {"args": [42, "kim"], "kwargs": {"urgent": True}}
    assert (job.queue, job.created_by) == ("mail", "lee")
    assert Action.objects.get().verb == "enqueue"


@pytest.mark.parametrize(
    ("typed", "value"),
    [("42", 42), ("4.5", 4.5), ("null", None), ("[1]", [1]), ('"42"', "42"), ("kim", "kim"),
     ("2026-01-01", "2026-01-01"), ("", "")],
)  # fmt: skip
def test_argument_is_json_or_text(jobs, typed, value):
    jobs("enqueue", f"{HERE}.send", typed)
    assert Job.objects.get().arguments["args"] == [value]


def test_options_are_those_of_the_job(jobs):
    ran = jobs(
        "enqueue", f"{HERE}.send", 1, "--queue", "default", "--priority", "-5", "--at", "+2h",
        "--expires", "+3h", "--tag", "order:1", "--tag", "vip", "--max-attempts", "unlimited",
        "--json",
    )  # fmt: skip
    job = Job.objects.get()
    assert ran.json == {"id": str(job.id), "state": "scheduled", "made": True}
    assert (job.queue, job.priority, job.max_attempts) == ("default", -5, None)
    assert round((job.expires_at - job.run_at).total_seconds()) == 3_600
    assert JobTag.objects.count() == 2


def test_job_that_had_been_enqueued_already_is_not_made_twice(jobs):
    jobs("enqueue", f"{HERE}.send", 1, "--unique-key", "k")
    ran = jobs("enqueue", f"{HERE}.send", 1, "--unique-key", "k")
    assert ran.out.strip() == f"{Job.objects.get().id} had been enqueued already, and is ready."


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["no.such.task"], "is not registered"),
        ([f"{HERE}.send"], "missing a required argument: 'order_id'. Nothing was changed."),
        ([f"{HERE}.send", "1", "--kwarg", "urgent"], "NAME=VALUE"),
        ([f"{HERE}.send", "1", "--kwarg", "colour=red"], "colour"),
        ([f"{HERE}.send", "1", "--queue", "post"], "post"),
        ([f"{HERE}.send", "1", "--priority", "101"], "-100 to 100"),
        ([f"{HERE}.send", "1", "--max-attempts", "none"], "unlimited"),
        ([f"{HERE}.send", "1", "--at", "tomorrow"], "This is no time"),
        ([f"{HERE}.send", "1", "--tag", ""], "tag"),
    ],
)
def test_what_cannot_be_makes_no_job(jobs, words, says):
    ran = jobs("enqueue", *words)
    assert ran.code != 0
    assert says in str(ran.error)
    assert not Job.objects.exists()


def test_ended_job_is_copied(storage, jobs):
    dead = buried(storage)
    ran = jobs("run-again", dead)
    copy = Job.objects.get(copied_from=dead)
    assert ran.out.splitlines() == ["1 copied", f"{dead} → {copy.id}"]
    assert row(dead).state == "dead"
    answer = jobs("run-again", dead, "--json").json
    assert answer["counts"] == {"copied": 1}
    assert list(answer["copies"]) == [str(dead)]


def test_job_that_has_not_ended_is_not_copied(storage, jobs):
    (ready,) = insert(storage)
    ran = jobs("run-again", ready, uuid.uuid4())
    assert ran.code == 1
    assert "skipped: ready" in str(ran.error)
    assert Job.objects.count() == 1
