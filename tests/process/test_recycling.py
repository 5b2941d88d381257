"""Processes that make room for others, and drained workers: no job is cut off or blamed."""

from collections import Counter

import pytest
from django.core.management import call_command

from jobqueue.models import Action, Job, Worker
from jobqueue.runtime.exit_codes import CLEAN
from tests.process.harness import is_running, outcomes
from tests.process.tasks import nothing_but_ask_code, wait_and_commit, write
from tests.waiting import wait_until


def assert_nobody_was_blamed(site):
    assert set(Job.objects.values_list("state", "suspicions", "fence")) == {("succeeded", 0, 1)}
    assert all(
        outcomes(job_id) == ["succeeded"] for job_id in Job.objects.values_list("pk", flat=True)
    )
    site.assert_exactly_once()


def test_a_process_runs_no_more_jobs_than_allowed_and_another_takes_its_place(site):
    write.enqueue_many([write.bind() for _ in range(12)])
    program = site.runworker("--max-jobs", "5", "--until-empty")
    assert program.wait() == CLEAN
    ran = Counter(note["pid"] for note in site.folder.notes("start"))
    assert sorted(ran.values()) == [2, 5, 5]
    assert len(program.events("process.recycling", why="it has taken 5 jobs")) == 2
    assert_nobody_was_blamed(site)


@pytest.mark.parametrize("limit", [("--max-jobs", "1"), ("--max-memory", "1M")], ids=lambda a: a[0])
def test_the_other_process_starts_while_this_one_ends_its_jobs(site, limit):
    """The memory is less than an empty process needs; jobs get done all the same."""
    program = site.runworker(*limit)
    long = wait_and_commit.enqueue("gate")
    first = site.wait_for_note("start")["pid"]
    program.wait_for("process.recycling")
    later = write.enqueue()
    second = site.wait_for_note("start", job=later.id)["pid"]
    assert second != first
    assert is_running(first)
    site.folder.open_gate("gate")
    wait_until(lambda: not is_running(first), "the first process to leave")
    assert outcomes(long.id) == ["succeeded"]
    site.wait_until_done()
    assert program.stop() == CLEAN
    assert_nobody_was_blamed(site)


def test_a_drained_worker_ends_its_job_and_is_not_replaced(site):
    program = site.runworker("--processes", "2")
    program.workers(2)
    job = wait_and_commit.enqueue("gate")
    drained = site.wait_for_note("start")["pid"]
    worker = Worker.objects.get(pid=drained)
    call_command("jobs", "drain", f"{worker.host}:{worker.pid}", "--actor", "kim")
    program.wait_for("process.draining", worker=str(worker.pk))
    later = write.enqueue_many([write.bind() for _ in range(10)])
    wait_until(lambda: all(outcomes(j.id) == ["succeeded"] for j in later), "the other to work")
    assert drained not in {note["pid"] for note in site.folder.notes("start")[1:]}
    assert is_running(drained)
    site.folder.open_gate("gate")
    wait_until(lambda: not is_running(drained), "the drained process to end")
    assert outcomes(job.id) == ["succeeded"]
    assert len(program.events("process.started")) == 2
    assert Action.objects.get().verb == "drain"
    (last,) = program.workers()
    call_command("jobs", "drain", str(Worker.objects.get(pid=last).pk))
    assert program.wait() == CLEAN
    assert program.events("worker.draining", why="every worker process was drained")
    assert_nobody_was_blamed(site)


@pytest.fixture
def code(site):
    """A module of the project; its size changes with each value, as bytecode goes by that too."""
    path = site.path / "changing.py"

    def change(text):
        path.write_text(text)
        return path

    change("VALUE = 1\n")
    return change


def test_changed_code_is_run_also_after_it_was_broken_for_a_while(site, code):
    program = site.runworker(
        "--reload",
        environment={"PYTHONPATH": str(site.path)},
        IMPORTS=["tests.process.tasks", "changing"],
    )
    assert nothing_but_ask_code.enqueue().wait(60).return_value == 1
    path = code("VALUE = (\n")
    program.wait_for("process.recycling", why=f"{path} has changed")
    wait_until(lambda: "SyntaxError" in program.text(), "the new process to fail")
    code("VALUE = 333\n")
    assert nothing_but_ask_code.enqueue().wait(60).return_value == 333
    assert program.stop() == CLEAN
    assert_nobody_was_blamed(site)
