"""Running jobs that somebody wants cancelled: asked, and ended by force."""

from jobqueue import control
from jobqueue.models import Job
from tests.process.harness import assert_sound, outcomes
from tests.process.tasks import (
    sleep_unless_open,
    wait_and_commit,
    wait_in_coroutine,
    wait_to_be_cancelled,
)
from tests.waiting import wait_until

KIM = control.Actor("kim", "shell")


def test_running_jobs_that_are_asked_end_as_cancelled_and_are_not_run_again(site):
    """One asks its context, the other is a coroutine, which is cancelled."""
    program = site.runworker()
    jobs = [wait_to_be_cancelled.enqueue(), wait_in_coroutine.enqueue("never")]
    site.wait_for_note("start", count=2)
    outcome = control.cancel([job.id for job in jobs], KIM, reason="typo")
    assert str(outcome) == "2 asked"
    site.wait_until_done()
    for row in Job.objects.all():
        assert (row.state, row.reason, row.failures) == ("cancelled", "typo", 0)
        assert outcomes(row.pk) == ["cancelled"]
    assert program.stop() == 0
    assert_sound()


def test_forced_cancel_of_a_job_that_hangs_frees_its_slot_at_nobodys_cost(site):
    program = site.runworker()
    hanging = sleep_unless_open.enqueue("never")
    beside = wait_and_commit.enqueue("gate")
    for job in (hanging, beside):
        site.wait_for_note("start", job=job.id)
    assert str(control.cancel([hanging.id], KIM, force=True)) == "1 cancelled"
    program.wait_for("process.killed")
    site.folder.open_gate("gate")
    wait_until(lambda: Job.objects.get(pk=beside.id).state == "succeeded", "the other job")
    assert outcomes(hanging.id) == ["cancelled"]
    assert outcomes(beside.id) == ["lost", "succeeded"]
    assert Job.objects.get(pk=beside.id).suspicions == 0
    site.assert_exactly_once()
    assert program.stop() == 0
