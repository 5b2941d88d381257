"""Unique jobs under kill -9 and SIGSTOP: one live job a key is left, and poison is buried."""

import os
import signal
import threading
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone

from jobqueue.models import Job
from jobqueue.states import LIVE
from tests.process.harness import outcomes
from tests.process.tasks import kill_own_process, wait_and_commit, write, write_and_wait
from tests.waiting import wait_until

KEY = "account:7"
SHORT_LEASE = {"LEASE_SECONDS": 2, "HEARTBEAT_SECONDS": 0.3}
on_leases = pytest.mark.postgres_only("on SQLite a frozen worker keeps its jobs until a deadline")


def unique(task):
    return task.using(unique_key=KEY)


def live_jobs():
    return {str(pk) for pk in Job.objects.filter(state__in=LIVE).values_list("pk", flat=True)}


def test_job_of_a_killed_worker_gives_way_to_the_twin_that_waits(site):
    site.folder.open_gate("open")
    site.runworker("--threads", "1")
    job = unique(wait_and_commit).enqueue("gate")
    pid = site.wait_for_note("start")["pid"]
    twin = unique(wait_and_commit).enqueue("open")
    assert unique(wait_and_commit).enqueue("open").id == twin.id
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: str(job.id) not in live_jobs(), "the twin to be left alone")
    assert live_jobs() <= {twin.id}
    site.wait_until_done()
    row = Job.objects.get(pk=job.id)
    assert (row.state, row.reason, outcomes(job.id)) == ("cancelled", "superseded", ["lost"])
    assert outcomes(twin.id) == ["succeeded"]
    site.assert_exactly_once()


@on_leases
def test_zombie_of_a_superseded_job_commits_nothing(site):
    frozen_program = site.runworker("--no-maintenance", "--threads", "1", **SHORT_LEASE)
    job = unique(write_and_wait).enqueue("gate")
    zombie = site.wait_for_note("written")["pid"]
    twin = unique(write_and_wait).enqueue("gate")
    for pid in (frozen_program.pid, zombie):
        os.kill(pid, signal.SIGSTOP)
    site.folder.open_gate("gate")
    site.start("runreaper")
    # Only now may the twin start: before, it would give up the key, and the job would come back.
    wait_until(lambda: str(job.id) not in live_jobs(), "the twin to be left alone")
    site.runworker("--no-maintenance")
    site.wait_until_done()
    for pid in (frozen_program.pid, zombie):
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: frozen_program.events("worker.self_exit"), "the zombie to exit")
    assert Job.objects.get(pk=job.id).reason == "superseded"
    assert (outcomes(job.id), outcomes(twin.id)) == (["lost"], ["succeeded"])
    site.assert_exactly_once()


def test_poison_that_is_asked_for_again_and_again_is_buried_all_the_same(site):
    site.runworker()
    deaths = 0
    unique(kill_own_process).enqueue()
    while not Job.objects.filter(state="dead").exists():
        deaths += 1
        site.wait_for_note("start", count=deaths)
        unique(kill_own_process).enqueue()  # while it runs, or a twin waits: at most one more
        wait_until(
            lambda count=deaths: (
                len(site.folder.notes("start")) > count or Job.objects.filter(state="dead").exists()
            ),
            "the next death",
        )
    dead = Job.objects.filter(state="dead").first()
    assert (dead.reason, dead.suspicions) == ("poison", 3)
    Job.objects.filter(state__in=LIVE).delete()
    write.enqueue()
    site.wait_until_done()
    site.assert_exactly_once()


@pytest.mark.postgres_only("SQLite has no row locks")
def test_worker_starts_a_job_whose_row_is_never_free(site):
    """Each caller meets it, and stays in its transaction until another waits for its turn."""
    job = unique(write).enqueue()
    Job.objects.filter(pk=job.id).update(run_at=timezone.now() - timedelta(seconds=6))
    has_run, errors = threading.Event(), []

    def call():
        try:
            while not has_run.is_set():
                with transaction.atomic():
                    unique(write).enqueue()
                    has_run.wait(0.1)
                    transaction.set_rollback(True)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    try:
        site.runworker()
        wait_until(lambda: outcomes(job.id), "its turn")
    finally:
        has_run.set()
        for caller in callers:
            caller.join(60)
    assert (outcomes(job.id), errors) == (["succeeded"], [])
    site.assert_exactly_once()
