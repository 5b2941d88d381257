"""Looking at jobs from a shell: list and show."""

import json
import uuid

import pytest
from django.utils import timezone

from jobqueue import control
from jobqueue.models import Attempt, Job, Step
from jobqueue.payload import ErrorText
from jobqueue.storage.records import NewLine, NewProgress
from tests.storage.making import buried, claim, claimed, ending, insert, register

SECRET = '{"args":["token-4711"],"kwargs":{}}'


# --- list -----------------------------------------------------------------------------------------


def test_newest_job_comes_first(storage, jobs):
    ids = insert(storage, 3)
    ran = jobs("list")
    listed = [line.split()[0] for line in ran.out.splitlines()[1:]]
    assert listed == [str(job_id) for job_id in sorted(ids, reverse=True)]


def test_columns_say_what_happened(storage, jobs):
    job_id = buried(storage)
    header, line = jobs("list").out.splitlines()
    assert header.split()[:5] == ["id", "task", "state", "queue", "failures"]
    assert line.split()[:5] == [str(job_id), "app.task", "dead", "default", "1/5"]
    assert line.endswith("ValueError: no such order")


def test_unlimited_budget_is_shown_as_such(storage, jobs):
    insert(storage, max_attempts=None)
    assert " 0/∞ " in jobs("list").out


def test_a_job_that_succeeded_at_once_does_not_look_as_if_it_never_ran(storage, jobs):
    (job_id,) = insert(storage, max_attempts=8)
    Job.objects.filter(id=job_id).update(attempts=1, fence=1)
    shown = jobs("show", str(job_id)).out
    assert "attempts  1 so far; 0 of at most 8 failures used up" in shown


def test_filters_narrow_the_list(storage, jobs):
    dead = buried(storage)
    (mail,) = insert(storage, queue="mail")
    (other,) = insert(storage, task="other.task")

    def listed(*words):
        return {uuid.UUID(job["id"]) for job in jobs("list", "--json", *words).json["jobs"]}

    assert listed("--state", "dead") == {dead}
    assert listed("--state", "dead", "--state", "ready") == {dead, mail, other}
    assert listed("--queue", "mail") == {mail}
    assert listed("--task", "other.task") == {other}
    assert listed("--task", "no.such.task") == set()


def test_list_takes_a_filter(storage, jobs):
    dead = buried(storage)
    (mail,) = insert(storage, queue="mail", arguments='{"args":[],"kwargs":{"user_id":42}}')
    (cancelled,) = insert(storage, queue="mail")
    control.cancel([cancelled], control.Actor("kim", "shell"))

    def listed(*words):
        return {uuid.UUID(job["id"]) for job in jobs("list", "--json", *words).json["jobs"]}

    assert listed("error:ValueError") == {dead}
    assert listed("queue:mail", "args.user_id:42") == {mail}
    assert listed("queue:mail", "state:any") == {mail, cancelled}
    assert listed("queue:mail", "--state", "cancelled") == {cancelled}
    assert listed("--", "-queue:mail") == {dead}
    assert listed("--queue", "mail") == {mail, cancelled}


def test_filter_that_names_no_state_says_where_it_looked(storage, jobs):
    assert jobs("list", "queue:mail").out.strip() == (
        "No job matches. Only live and dead jobs were looked at; add state:any to look at all."
    )
    assert jobs("list", "queue:mail", "state:any").out.strip() == "No job matches."


def test_a_queue_that_is_not_there_is_told_beside_those_that_are(jobs):
    out = jobs("list", "queue:mial", "state:any").out.strip()
    assert out == (
        "No job matches. Queue mial is not in QUEUES of TASKS['default'], which has default, mail."
    )


def test_error_in_a_filter_is_pointed_at(jobs):
    ran = jobs("list", "queue:mail", "stat:dead")
    assert ran.code == 1
    problem, text, marks = str(ran.error).splitlines()
    assert "Did you mean state?" in problem
    assert (text, marks) == ("queue:mail stat:dead", "           ^^^^")


def test_limit_says_that_there_are_more(storage, jobs):
    insert(storage, 3)
    assert "--limit shows more" in jobs("list", "--limit", 2).out
    answer = jobs("list", "--limit", 2, "--json").json
    assert (len(answer["jobs"]), answer["more"]) == (2, True)
    assert jobs("list", "--limit", 3, "--json").json["more"] is False


def test_empty_list_says_so(jobs):
    assert jobs("list").out.strip() == "No job matches."


def test_unknown_state_names_the_states(jobs):
    ran = jobs("list", "--state", "failed")
    assert ran.code != 0
    assert "scheduled, ready, blocked, running" in str(ran.error)


def test_list_never_shows_arguments(storage, jobs):
    insert(storage, arguments=SECRET)
    assert "4711" not in jobs("list").out + jobs("list", "--json").out


def test_job_data_cannot_steer_the_terminal(storage, jobs):
    held = claimed(storage)
    hostile = ErrorText("a.B", "\x1b[2J\x1b]0;owned\x07 bad\u202e", "tr\x1b[31mace", "0" * 32)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True, error=hostile)])

    for ran in (jobs("list"), jobs("show", held.id)):
        assert "\x1b" not in ran.out
        assert "\x07" not in ran.out
        assert "\u202e" not in ran.out
        assert "\\x1b[2J" in ran.out


# --- show -----------------------------------------------------------------------------------------


@pytest.fixture
def eventful(storage):
    """A job that failed, was requeued by somebody, and runs again."""
    worker = register(storage)
    job_id = buried(storage, worker)
    Job.objects.filter(id=job_id).update(created_by="lee")
    control.requeue([job_id], control.Actor("kim", "admin"))
    storage.insert_jobs([])
    Step.objects.create(
        job_id=job_id, name="charge", result="ch_17", fence=1, recorded_at=timezone.now()
    )
    storage.claim_many(worker, ["default"], ["app.task"], 1)
    return job_id


def test_show_tells_the_whole_story(eventful, jobs):
    out = jobs("show", eventful).out
    assert f"app.task {eventful}" in out
    assert "running" in out
    assert "tests (here:" in out  # the worker, by name
    assert "failed, counts as a failure" in out
    assert "ValueError: no such order" in out
    assert "traceback of attempt 1" in out
    assert "charge" in out
    assert "requeue" in out
    assert "by lee" in out
    assert "admin" in out


def test_show_lists_tags(storage, jobs):
    (job_id,) = insert(storage, tags=("order:42", "vip"))
    assert "order:42, vip" in jobs("show", job_id).out


def test_show_tells_what_the_job_says_of_itself(storage, jobs):
    held = claimed(storage)
    assert "progress" not in jobs("show", held.id).out
    storage.write_progress([NewProgress(held.id, held.fence, 120.0, 500.0, "reading", 0.0)])
    storage.write_lines(
        [NewLine(held.id, held.fence, n, 20, "shop", f"line {n}\nmore", 0.0) for n in range(1, 31)],
        100,
    )
    out = jobs("show", held.id).out
    assert "120 of 500 (24 %), reading" in out
    assert "the last 20 lines" in out
    assert "fence 1  INFO shop: line 30" in out
    assert "line 10\n" not in out
    storage.end_many([ending(held, "dead", outcome="failed", charged=True)])
    whole = jobs("show", held.id, "--log").out
    assert whole.count("attempt 1  INFO shop: line ") == whole.count("      more") == 30


def test_payload_is_shown_only_when_asked_for(storage, jobs):
    (job_id,) = insert(storage, arguments=SECRET)
    quiet = jobs("show", job_id).out
    assert "4711" not in quiet
    assert "--payload" in quiet
    assert "token-4711" in jobs("show", job_id, "--payload").out


def test_results_of_steps_are_payload(eventful, jobs):
    assert "ch_17" not in jobs("show", eventful).out
    assert "ch_17" in jobs("show", eventful, "--payload").out


def test_job_that_never_ran_says_so(storage, jobs):
    (job_id,) = insert(storage)
    assert "No attempt has ended." in jobs("show", job_id).out


def test_long_history_is_cut_at_its_old_end(storage, jobs, monkeypatch):
    monkeypatch.setattr("jobqueue.management.jobs_commands.show.MAX_ATTEMPTS_SHOWN", 2)
    worker = register(storage)
    job_id = buried(storage, worker)
    for _ in range(2):
        control.requeue([job_id], control.Actor("kim", "shell"))
        (held,) = storage.claim_many(worker, ["default"], ["app.task"], 1)
        storage.end_many([ending(held, "dead", outcome="failed", charged=True)])
    out = jobs("show", job_id).out
    assert "the last 2 of 3 attempts" in out
    assert Attempt.objects.filter(job_id=job_id).count() == 3


def test_worker_without_a_row_is_not_hidden(storage, jobs):
    held = claimed(storage)
    from jobqueue.models import Worker

    Worker.objects.all().delete()
    assert f"{held.worker} (no row: it will be taken back)" in jobs("show", held.id).out


@pytest.mark.parametrize(("job", "says"), [(uuid.UUID(int=7), "no job"), ("x", "Not the id")])
def test_unknown_job_is_an_error(jobs, job, says):
    ran = jobs("show", job)
    assert ran.code == 1
    assert says in str(ran.error)


def test_json_of_a_list_is_one_line_with_stable_names(storage, jobs):
    insert(storage)
    out = jobs("list", "--json").out
    assert out.count("\n") == 1
    (job,) = json.loads(out)["jobs"]
    assert {"id", "task", "state", "queue", "attempts", "max_attempts", "run_at"} <= set(job)


def test_secrets_are_hidden_from_what_is_shown(storage, jobs):
    held = claimed(storage, arguments='{"args":["kim"],"kwargs":{"password":"hunter2"}}')
    error = ErrorText(
        "a.B", "cannot reach redis://:hunter2@cache", "Traceback …\ntoken=hunter2", "0" * 32
    )
    storage.end_many([ending(held, "dead", outcome="failed", charged=True, error=error)])
    shown = jobs("show", held.id, "--payload").out
    assert "hunter2" not in shown + jobs("list").out + jobs("list", "--json").out
    assert '"kwargs": {"password": "[hidden]"}' in shown
    assert "redis://:[hidden]@cache" in shown


def test_the_budget_counts_what_is_charged_not_every_execution(storage, jobs):
    (job_id,) = insert(storage)
    worker = register(storage)
    for outcome, is_charged in (("lost", False), ("snoozed", False), ("failed", True)):
        (held,) = claim(storage, worker)
        storage.end_many([ending(held, "ready", outcome=outcome, charged=is_charged)])
    (line,) = [line for line in jobs("list").out.splitlines() if str(job_id) in line]
    assert "1/5" in line
    shown = jobs("show", str(job_id)).out
    assert "3 so far; 1 of at most 5 failures used up" in shown
    assert "interrupted" in shown
    assert "lost" not in shown
