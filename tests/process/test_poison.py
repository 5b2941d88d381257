"""Jobs that take their worker with them are suspected, isolated, buried; the others are done."""

import pytest

from jobqueue import control
from jobqueue.models import Job, Worker
from jobqueue.runtime.exit_codes import CLEAN, LEASE_LOST, MISCONFIGURED
from tests.process.harness import assert_sound, outcomes
from tests.process.tasks import (
    kill_once,
    kill_own_process,
    nothing_but_exit,
    write,
    write_and_wait,
)
from tests.waiting import wait_until

POISON = "poison"


def test_poison_job_is_buried_after_three_lost_workers_and_the_others_are_done(site):
    program = site.runworker()
    poison = kill_own_process.enqueue()
    normal = write.enqueue_many([write.bind() for _ in range(50)])
    site.wait_until_done()
    site.assert_exactly_once()
    row = Job.objects.get(pk=poison.id)
    assert (row.state, row.reason, row.failures) == ("dead", POISON, 0)
    assert outcomes(poison.id) == ["lost"] * 3
    assert slots_of_starts(site, poison) == [4, 4, 1]
    assert all(outcomes(job.id)[-1] == "succeeded" for job in normal)
    fragile = kill_once.enqueue()
    site.wait_until_done()
    row = Job.objects.get(pk=fragile.id)
    assert (row.state, row.reason) == ("dead", "worker lost")
    assert outcomes(fragile.id) == ["lost"]
    assert program.stop() == 0


@pytest.mark.parametrize("code", [CLEAN, LEASE_LOST, MISCONFIGURED])
def test_job_that_ends_its_process_as_a_worker_would_is_blamed_all_the_same(site, code):
    program = site.runworker(SUSPICIONS=1)
    poison = nothing_but_exit.enqueue(code)
    site.wait_until_done()
    row = Job.objects.get(pk=poison.id)
    assert (row.state, row.reason) == ("dead", POISON)
    program.wait_for("process.exited", code=code)
    write.enqueue()
    site.wait_until_done()
    assert program.stop() == CLEAN
    site.assert_exactly_once()


def test_suspect_that_waits_to_run_alone_can_be_cancelled(site):
    site.runworker(RETRY={"base": 600})
    poison = kill_own_process.enqueue()
    job = wait_until(Job.objects.filter(pk=poison.id, state="retrying").first, "the second loss")
    assert job.alone
    outcome = control.cancel([job.pk], control.Actor("tester", "shell"))
    assert str(outcome) == "1 cancelled"
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert outcomes(job.pk) == ["lost", "lost"]
    assert_sound()


@pytest.mark.parametrize("is_pruned", [False, True], ids=["row kept", "row deleted"])
def test_worker_of_the_same_name_takes_over_whether_or_not_the_dead_one_has_a_row(site, is_pruned):
    victim = site.runworker("--no-maintenance", "--name", "same", LEASE_SECONDS=2)
    job = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    victim.kill_all()
    if is_pruned:
        Worker.objects.all().delete()
    site.folder.open_gate("gate")
    site.runworker("--name", "same")
    site.wait_until_done()
    assert outcomes(job.id) == ["lost", "succeeded"]
    site.assert_exactly_once()


def slots_of_starts(site, job):
    """Return how many slots each process had in which the job started."""
    pids = [note["pid"] for note in site.folder.notes("start", job=str(job.id))]
    return [Worker.objects.get(pid=pid).slots for pid in pids]
