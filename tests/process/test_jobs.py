"""What one worker, shared by these tests, lives through without being started again."""

import signal

import pytest
from django.db import connection, transaction

from jobqueue.management.commands.runworker import SESSIONS_PER_PROCESS
from jobqueue.models import Job, Worker
from tests.process.harness import Program, Site, backends, outcomes, terminate
from tests.process.tasks import (
    nothing_but_ask_signals,
    nothing_but_ask_the_collector,
    nothing_but_end_a_copy,
    nothing_but_report,
    wait_in_coroutine,
    write,
    write_and_wait,
)
from tests.waiting import wait_until

THREADS = 4
CORRUPT = {"postgresql": '{"args": 3}', "sqlite": "[1, "}
"""Arguments as no enqueue makes them; PostgreSQL keeps text that is not JSON out."""

has_sessions = pytest.mark.postgres_only("SQLite has no sessions to end")


@pytest.fixture(scope="module")
def worker(shared_site: Site) -> Program:
    program = shared_site.runworker("--threads", str(THREADS))
    program.workers()
    return program


@pytest.fixture
def site(shared_site: Site, worker: Program) -> Site:
    shared_site.renew()
    return shared_site


def test_corrupt_row_dies_alone_and_the_rest_of_its_batch_is_done(site):
    with transaction.atomic():
        first, *others = write.enqueue_many([write.bind() for _ in range(50)])
        Job.objects.filter(pk=first.id).update(priority=100)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE jobqueue_job SET arguments = %s WHERE priority = 100",
                [CORRUPT[connection.vendor]],
            )
    site.wait_until_done()
    corrupt = Job.objects.get(pk=first.id)
    assert (corrupt.state, corrupt.reason) == ("dead", "undecodable row")
    assert all(outcomes(job.id) == ["succeeded"] for job in others)
    site.assert_exactly_once()


def test_program_that_a_job_starts_has_the_usual_signals(site):
    job = nothing_but_ask_signals.enqueue()
    site.wait_until_done()
    ignored, blocked = Job.objects.get(pk=job.id).result
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        assert not (ignored | blocked) & 1 << number - 1


def test_copy_that_a_job_forks_can_be_terminated(site):
    job = nothing_but_end_a_copy.enqueue()
    site.wait_until_done()
    assert Job.objects.get(pk=job.id).result == -signal.SIGTERM


def test_what_a_worker_has_imported_is_not_searched_for_garbage_again_and_again(site):
    job = nothing_but_ask_the_collector.enqueue()
    site.wait_until_done()
    assert Job.objects.get(pk=job.id).result > 10_000  # Django alone is more


def test_progress_and_log_lines_of_an_atomic_job_are_seen_while_it_runs(site):
    """On SQLite at its end: there it holds the only write lock."""
    job = nothing_but_report.enqueue("gate")
    site.wait_for_note("start")
    if connection.vendor != "sqlite":
        wait_until(lambda: job.progress and job.log_lines, "what the job says")
        assert str(job.progress) == "1 of 4 (25 %), waiting"
        assert [line.message for line in job.log_lines] == ["waiting at gate"]
    site.folder.open_gate("gate")
    site.wait_until_done()
    wait_until(lambda: len(job.log_lines) == 2, "the rest")
    assert str(job.progress) == "4 of 4 (100 %), done"


@has_sessions
def test_sessions_ended_while_the_worker_was_idle_are_replaced_unseen(site):
    fill_every_slot(site)
    terminate(backends(Worker.objects.get(dead=False)))
    jobs = write.enqueue_many([write.bind() for _ in range(20)])
    site.wait_until_done()
    assert all(outcomes(job.id) == ["succeeded"] for job in jobs)
    site.assert_exactly_once()


@has_sessions
def test_sessions_ended_between_jobs_and_in_jobs_leave_one_effect_each(site):
    waiting = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    flowing = write.enqueue_many([write.bind() for _ in range(100)])
    wait_until(lambda: len(site.folder.notes("start")) > 30, "jobs to flow")
    terminate(backends(Worker.objects.get(dead=False)))
    site.folder.open_gate("gate")
    site.wait_until_done()
    assert all(outcomes(job.id) == ["succeeded"] for job in [waiting, *flowing])
    site.assert_exactly_once()


@has_sessions
def test_sessions_are_bounded_by_threads_whatever_ran(site):
    site.folder.open_gate("gate")
    write.enqueue_many([write.bind() for _ in range(100)])
    wait_in_coroutine.enqueue_many([wait_in_coroutine.bind("gate") for _ in range(50)])
    site.wait_until_done()
    worker = Worker.objects.get(dead=False)
    bound = THREADS + SESSIONS_PER_PROCESS
    wait_until(lambda: len(backends(worker)) <= bound, f"at most {bound} sessions")


def test_worker_survived_all_of_it(worker):
    assert len(worker.events("process.started")) == 1
    assert not worker.events("process.exited")
    assert worker.stop() == 0


def fill_every_slot(site: Site) -> None:
    """Make every thread use the database, so that each holds a session."""
    for _ in range(THREADS):
        write_and_wait.enqueue("gate")
    site.wait_for_note("written", count=THREADS)
    site.folder.open_gate("gate")
    site.wait_until_done()
    site.renew()
