"""``jobs bulk``: what a filter matches, started, watched, stopped and resumed from a shell."""

import io
from datetime import UTC, datetime, timedelta

import pytest

from jobqueue import control
from jobqueue.engine import bulk, bulk_walk
from jobqueue.engine.bulk_steps import run_step
from jobqueue.management.endings import INTERRUPTED
from jobqueue.management.jobs_commands import bulk as bulk_command
from jobqueue.models import Action, BulkOperation, Job, Rollup
from tests.control.test_bulk import make
from tests.storage.making import insert, register, row, states


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    for name in ("LOOK_SECONDS", "BREATH_SECONDS"):
        monkeypatch.setattr(bulk_command, name, 0.0)


def test_start_carries_it_out_and_says_what_happened(storage, jobs):
    dead = make(3)
    ran = jobs("bulk", "start", "requeue", "state:dead", "error:ValueError", "--actor", "kim")
    assert (ran.code, ran.out.strip()) == (0, "3 requeued")
    assert states(*dead) == ["ready"] * 3
    action = Action.objects.get()
    assert (action.verb, action.actor, action.count) == ("bulk requeue", "kim", 3)


@pytest.mark.parametrize(
    ("words", "says", "check"),
    [
        (["cancel", "--reason", "typo"], "1 cancelled", {"state": "cancelled", "reason": "typo"}),
        (["reprioritize", "--priority", "7"], "1 reprioritized", {"priority": 7}),
        (["move", "--queue", "mail"], "1 moved", {"queue": "mail"}),
        (["run-now"], "1 made due now", {"state": "ready"}),
        (["reschedule", "--at", "+2h"], "1 rescheduled", {"state": "scheduled"}),
    ],
)
def test_every_verb_has_its_options(storage, jobs, words, says, check):
    (job_id,) = insert(storage, delay=60.0)
    verb, *options = words
    assert jobs("bulk", "start", verb, "state:waiting", *options).out.strip() == says
    assert {name: getattr(row(job_id), name) for name in check} == check


def test_spread_makes_them_due_evenly(storage, jobs):
    dead = make(3)
    jobs("bulk", "start", "requeue", "state:dead", "--spread", "10m")
    due = [row(job_id).run_at for job_id in dead]
    assert round((due[2] - due[1]).total_seconds()) == 200
    assert states(*dead) == ["ready", "scheduled", "scheduled"]


def test_detached_it_is_left_to_others(storage, jobs):
    dead = make(1)
    ran = jobs("bulk", "start", "requeue", "state:dead", "--detach")
    operation = BulkOperation.objects.get()
    assert ran.out.strip() == (
        f"Bulk operation {operation.pk} has begun: [{'-' * 24}] 0%, 0 of 1 job."
    )
    assert states(*dead) == ["dead"]
    run_step("default")
    assert states(*dead) == ["ready"]


def test_ids_are_read_from_a_file_or_standard_input(storage, jobs, tmp_path, monkeypatch):
    one, other = make(2)
    listed = tmp_path / "ids"
    listed.write_text(f"{one}\n\n")
    assert jobs("bulk", "start", "discard", "--ids", listed).out.strip() == "1 discarded"
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{other}\n{one}\n"))
    ran = jobs("bulk", "start", "discard", "--ids", "-")
    assert ran.out.strip() == "1 discarded, 1 skipped: cancelled"


def test_dry_run_says_what_it_would_be_about(storage, jobs, monkeypatch):
    make(2, queue="mail")
    make(1, task="app.other")
    ran = jobs("bulk", "start", "requeue", "state:dead", "--dry-run")
    assert ran.out.splitlines() == [
        "3 jobs would have a turn.",
        "  state dead  3",
        "  queue mail  2",
        "  queue default  1",
        "  task  app.task  2",
        "  task  app.other  1",
    ]
    assert jobs("bulk", "start", "requeue", "state:dead", "--dry-run", "--json").json["count"] == 3
    monkeypatch.setattr(bulk, "COUNT_CAP", 2)
    ran = jobs("bulk", "start", "requeue", "state:dead", "--dry-run")
    assert ran.out.startswith("more than 2 jobs would have a turn.")
    assert not BulkOperation.objects.exists()


def test_list_show_stop_and_resume(storage, jobs, monkeypatch):
    monkeypatch.setattr(bulk_walk, "MAX_ROWS", 2)
    dead = make(4)
    assert jobs("bulk").out.strip() == "There has been no bulk operation."
    jobs("bulk", "start", "requeue", "state:dead", "--detach", "--spread", "10m")
    number = BulkOperation.objects.get().pk
    run_step("default")

    half = f"[{'#' * 12}{'-' * 12}] 50%, 2 of 4 jobs"
    assert jobs("bulk", "stop", number).out.strip() == f"Bulk operation {number} stopped: {half}."
    shown = jobs("bulk", "show", number).out
    assert f"progress  {half}" in shown
    assert "so far    2 requeued" in shown
    assert "with      spread over 10 min" in shown
    header, line = jobs("bulk", "list").out.splitlines()
    assert header.split()[:4] == ["no.", "verb", "state", "seen"]
    assert line.split()[:4] == [str(number), "requeue", "stopped", "2/4"]
    assert jobs("bulk", "show", number, "--json").json["counts"] == {"requeued": 2}
    assert jobs("bulk", "list", "--json").json["operations"][0]["state"] == "stopped"

    assert "resumed" in jobs("bulk", "resume", number).out
    run_step("default")
    run_step("default")
    assert set(states(*dead)) == {"ready", "scheduled"}
    assert jobs("bulk", "show", number, "--json").json["state"] == "finished"
    refused = jobs("bulk", "stop", number)
    assert "is finished, so it cannot stop" in str(refused.error)


def test_resuming_warns_of_what_its_jobs_would_run_into_and_resumes(storage, jobs):
    make(1, queue="mail")
    jobs("bulk", "start", "requeue", "state:dead queue:mail task:app.task", "--detach")
    number = BulkOperation.objects.get().pk
    jobs("bulk", "stop", number)
    no_worker = "No worker is alive: nothing runs until one starts."
    stop = f"To stop it again: manage.py jobs bulk stop {number}."
    assert jobs("bulk", "resume", number).err.splitlines() == [no_worker, stop]

    jobs("bulk", "stop", number)
    register(storage)
    assert jobs("bulk", "resume", number).err == "", "nothing to warn of"

    jobs("bulk", "stop", number)
    control.pause("mail", control.Actor("kim", "shell"), "it is\x1b[2J down")
    at = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)
    Rollup.objects.create(seconds=60, kind="task", at=at, name="app.task", failed=30)
    ran = jobs("bulk", "resume", number)
    assert ran.err.splitlines() == [
        r"Queue mail is paused by kim. it is\x1b[2J down",
        "30 of 30 attempts of app.task failed in the last ten minutes: look at its errors first.",
        stop,
    ]
    assert ran.out.startswith(f"Bulk operation {number} resumed")
    assert jobs("bulk", "resume", number).err == "", "it runs, so this changes nothing"


def test_progress_is_shown_on_a_terminal(storage, jobs, monkeypatch):
    monkeypatch.setattr(bulk_walk, "MAX_ROWS", 2)
    make(4)
    lines = []
    monkeypatch.setattr("jobqueue.management.jobs_commands.base.Shell.progress",
                        lambda self, text: lines.append(text))  # fmt: skip
    jobs("bulk", "start", "requeue", "state:dead")
    assert [line.partition("]")[2] for line in lines[:2]] == [
        " 0%, 0 of 4 jobs",
        " 50%, 2 of 4 jobs",
    ]
    assert lines[-1] == ""


def test_operation_that_somebody_stops_meanwhile_says_so(storage, jobs, monkeypatch):
    monkeypatch.setattr(bulk_walk, "MAX_ROWS", 1)
    make(2)
    step = control.bulk_step

    def step_and_stop(backend, only):
        operation = step(backend, only=only)
        if operation is not None:
            control.bulk_stop(operation.pk, control.Actor("lee", "admin"))
        return operation

    monkeypatch.setattr(control, "bulk_step", step_and_stop)
    ran = jobs("bulk", "start", "requeue", "state:dead")
    assert ran.code == 1
    assert "has stopped (1 requeued until then); jobs bulk resume" in str(ran.error)


def test_interrupt_ends_the_watching_not_the_operation(storage, jobs, monkeypatch):
    make(1)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(control, "bulk_step", interrupt)
    ran = jobs("bulk", "start", "requeue", "state:dead")
    assert ran.code == INTERRUPTED
    assert "goes on wherever a runworker" in str(ran.error)
    assert BulkOperation.objects.get().state == "running"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["start"], "VERB one of requeue, cancel"),
        (["start", "explode", "state:dead"], "VERB one of requeue, cancel"),
        (["start", "requeue"], "such as state:dead"),
        (["start", "requeue", "state:daed"], "Did you mean dead"),
        (["start", "requeue", "state:dead", "--ids", "x"], "not both"),
        (["start", "requeue", "--ids", "/no/such/file"], "cannot be read"),
        (["start", "requeue", "state:dead", "--queue", "mail"], "takes no queue"),
        (["start", "reprioritize", "state:ready"], "needs priority"),
        (["start", "reprioritize", "state:ready", "--priority", "high"], "no priority"),
        (["start", "requeue", "state:dead", "--at", "tomorrow"], "This is no time"),
        (["start", "requeue", "state:dead", "--spread", "soon"], "not a duration"),
        (["show"], "jobs bulk show NUMBER"),
        (["stop", "one"], "jobs bulk stop NUMBER"),
        (["stop", "999999"], "There is no bulk operation 999999"),
        (["explode"], "invalid choice"),
    ],
)
def test_bad_input_changes_nothing_and_says_what_to_do(storage, jobs, words, says):
    make(1)
    ran = jobs("bulk", *words)
    assert ran.code != 0
    assert says in str(ran.error)
    assert not BulkOperation.objects.exists()
    assert Job.objects.get().state == "dead"
