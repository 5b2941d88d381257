"""A healthy job outlives many leases, also while its worker drains."""

import signal
from datetime import timedelta

import pytest

from jobqueue.models import Job, Worker
from tests.process.harness import outcomes
from tests.process.tasks import wait_and_commit, wait_in_coroutine, write_and_wait
from tests.waiting import wait_until

LEASE = timedelta(seconds=2)


@pytest.mark.postgres_only("SQLite has no leases, and one writer at a time")
def test_long_jobs_run_once_over_several_leases_and_through_a_drain(site):
    program = site.runworker(LEASE_SECONDS=LEASE.total_seconds(), HEARTBEAT_SECONDS=0.3)
    jobs = [task.enqueue("gate") for task in (write_and_wait, wait_and_commit, wait_in_coroutine)]
    site.wait_for_note("start", count=3)
    site.runworker()
    worker = Worker.objects.get(pid=site.folder.notes("start")[0]["pid"])
    wait_for_beat_at(worker, worker.heartbeat_at + 1.5 * LEASE)
    program.send(signal.SIGTERM)
    program.wait_for("worker.draining")
    worker.refresh_from_db()
    wait_for_beat_at(worker, worker.heartbeat_at + 1.5 * LEASE)
    site.folder.open_gate("gate")
    assert program.wait() == 0
    assert all(outcomes(job.id) == ["succeeded"] for job in jobs)
    assert len(site.folder.notes("start")) == 3
    assert set(Job.objects.values_list("fence", flat=True)) == {1}


def wait_for_beat_at(worker, time):
    beats = Worker.objects.filter(pk=worker.pk, heartbeat_at__gte=time, dead=False)
    wait_until(beats.exists, "a beat that long after")
