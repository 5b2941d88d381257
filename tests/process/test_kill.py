"""SIGKILL: of a worker process, of its supervisor, of both; nothing is lost, nothing done twice."""

import os
import signal

import pytest
from django.db import connection

from jobqueue.models import Job, Worker
from jobqueue.storage.connections import open_connection, transaction_on
from tests.process.harness import assert_sound, backends, is_running, outcomes
from tests.process.tasks import (
    fork_and_wait,
    nothing_plain,
    wait_and_commit,
    write,
    write_and_wait,
)
from tests.storage.making import run_sql
from tests.waiting import wait_until


def test_job_of_a_killed_child_runs_again_and_leaves_one_effect(site):
    program = site.runworker()
    job = write_and_wait.enqueue("gate")
    os.kill(site.wait_for_note("written")["pid"], signal.SIGKILL)
    site.folder.open_gate("gate")
    site.wait_until_done()
    site.assert_exactly_once()
    assert outcomes(job.id) == ["lost", "succeeded"]
    assert program.stop() == 0


def test_children_of_a_killed_supervisor_end_their_job_and_exit(site):
    program = site.runworker("--processes", "2")
    pids = program.workers(2)
    job = wait_and_commit.enqueue("gate")
    busy = site.wait_for_note("start")["pid"]
    program.kill()
    (idle,) = set(pids) - {busy}
    wait_until(lambda: not is_running(idle), "the idle child to exit")
    later = write.enqueue()
    site.folder.open_gate("gate")
    wait_until(lambda: not any(map(is_running, pids)), "the busy child to exit")
    assert outcomes(job.id) == ["succeeded"]
    assert Job.objects.get(pk=later.id).state == "ready"
    assert set(Worker.objects.values_list("dead_reason", flat=True)) == {"stopped"}
    site.assert_exactly_once()


def test_reaper_elsewhere_sees_a_killed_set_long_before_its_lease_ends(site):
    # The lease of its own only says how long a reaper that has just connected looks on.
    reaper = site.start("runreaper", LEASE_SECONDS=1, HEARTBEAT_SECONDS=0.3)
    victim = site.runworker("--no-maintenance", LEASE_SECONDS=600)
    job = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    site.wait_until_seen(Worker.objects.get())
    victim.kill_all()
    reaper.wait_for("job.reaped", job=str(job.id))
    assert Job.objects.get(pk=job.id).state == "ready"
    assert outcomes(job.id) == ["lost"]
    site.folder.open_gate("gate")
    site.runworker("--until-empty").wait()
    assert outcomes(job.id) == ["lost", "succeeded"]
    site.assert_exactly_once()


@pytest.mark.postgres_only("SQLite has no sessions")
def test_copy_that_a_job_forked_keeps_no_session_of_its_dead_worker(site):
    # Nobody ends sessions here: they must go because the copy does not hold them.
    site.runworker(END_SESSIONS=False)
    job = fork_and_wait.enqueue("gate")
    copy = site.wait_for_note("copy")["pid"]
    worker = Worker.objects.get(dead=False)
    assert backends(worker)
    os.kill(worker.pid, signal.SIGKILL)
    wait_until(lambda: not backends(worker), "the sessions of the dead worker to go")
    assert is_running(copy)
    site.folder.open_gate("gate")
    site.wait_until_done()
    site.assert_exactly_once()
    assert outcomes(job.id) == ["lost", "succeeded"]


BATCHES = """SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
             AND query LIKE 'WITH given%' AND query LIKE '%lock_timeout%'"""


@pytest.mark.postgres_only("SQLite has no statement that outlives its process")
@pytest.mark.parametrize("ends_sessions", [True, False])
def test_batch_that_outlives_its_worker_is_written_once_or_not_at_all(site, ends_sessions):
    """The server may go on with it: the guard decides between it and the reaper."""
    program = site.runworker(END_SESSIONS=ends_sessions)
    (victim,) = program.workers()
    holder = open_connection("default")
    try:
        with transaction_on(holder):
            run_sql(holder, "LOCK TABLE jobqueue_attempt IN SHARE MODE")
            jobs = nothing_plain.enqueue_many([nothing_plain.bind()] * 20)
            wait_until(lambda: run_sql(connection, BATCHES) == [(1,)], "the batch to wait")
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda: not is_running(victim), "the worker to be gone")
    finally:
        holder.close()
    site.wait_until_done()
    assert_sound()
    ends = {tuple(outcomes(job.id)) for job in jobs}
    assert ends <= {("succeeded",), ("lost", "succeeded")}
