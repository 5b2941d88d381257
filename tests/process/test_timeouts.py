"""Jobs that never stop by themselves: over within their time, at nobody else's cost."""

import signal
from collections import Counter

import pytest

from jobqueue.models import Attempt, Job
from jobqueue.runtime.exit_codes import CLEAN
from tests.process.harness import assert_sound, freeze, is_running, outcomes
from tests.process.tasks import (
    block_the_loop,
    match_for_ever,
    read_a_silent_socket,
    sleep_for_an_hour,
    swallow_everything,
    wait_and_commit,
    write,
)
from tests.waiting import wait_until

KINDS = (
    sleep_for_an_hour,
    match_for_ever,
    read_a_silent_socket,
    swallow_everything,
    block_the_loop,
)


def test_jobs_that_hang_in_every_way_are_over_and_harm_no_other(site):
    """Sleep, a pattern that holds the interpreter, a socket, a loop that swallows: each dies twice.

    The job beside them loses its process again and again, for which it is neither charged nor
    suspected; and there are as many slots as before.
    """
    program = site.runworker("--threads", str(len(KINDS)))
    beside = wait_and_commit.enqueue("gate")
    site.wait_for_note("start", job=beside.id)
    hanging = [task.enqueue() for task in KINDS]
    for job in hanging:
        wait_until(lambda job=job: row(job).state == "dead", "the job to die")
        charged = Attempt.objects.filter(job_id=job.id, charged=True)
        assert list(charged.values_list("outcome", flat=True)) == ["timed_out"] * 2
        assert row(job).reason == "out of attempts"
    site.folder.open_gate("gate")
    others = write.enqueue_many([write.bind() for _ in range(20)])
    site.wait_until_done()
    assert (row(beside).state, row(beside).failures) == ("succeeded", 0)
    assert all(row(job).suspicions == 0 for job in [beside, *hanging])
    assert Counter(outcomes(beside.id)).keys() <= {"lost", "succeeded"}
    assert all(outcomes(job.id) == ["succeeded"] for job in others)
    site.assert_exactly_once()
    assert program.stop() == CLEAN


def test_job_that_hangs_is_started_twice_and_ends_in_a_drain_too(site):
    program = site.runworker()
    job = sleep_for_an_hour.enqueue()
    site.wait_for_note("start", count=2)
    program.send(signal.SIGTERM)
    assert program.wait() == CLEAN
    assert outcomes(job.id) == ["timed_out", "timed_out"]
    assert (row(job).state, len(site.folder.notes("start"))) == ("dead", 2)
    site.assert_exactly_once()


on_leases = pytest.mark.postgres_only("on one host its job's deadline ends a frozen worker")


@pytest.mark.parametrize(
    "has_job", [pytest.param(True, marks=on_leases, id="in a job"), pytest.param(False, id="idle")]
)
def test_frozen_child_is_killed_and_replaced(site, has_job):
    program = site.runworker(LEASE_SECONDS=2, HEARTBEAT_SECONDS=0.5)
    (frozen,) = program.workers()
    if has_job:
        job = wait_and_commit.enqueue("gate")
        site.wait_for_note("start", job=job.id)
    freeze(frozen)
    program.wait_for("process.killed", pid=frozen, why="frozen")
    site.folder.open_gate("gate")
    write.enqueue()
    site.wait_until_done()
    assert not is_running(frozen)
    assert program.stop() == CLEAN
    assert_sound()


def row(job) -> Job:
    return Job.objects.get(pk=job.id)
