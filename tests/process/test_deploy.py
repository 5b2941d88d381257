"""A rolling deploy: workers that know no new task yet, find it, or come before the migrations."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from jobqueue.models import Job
from jobqueue.runtime.exit_codes import ABORTED, CLEAN
from tests.plugin import SQLITE
from tests.process.databases import django_on, migrate, new_database
from tests.process.harness import outcomes
from tests.process.new_tasks import write_anew
from tests.process.tasks import write
from tests.waiting import wait_until


@pytest.fixture
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without any table."""
    if request.config.getoption("database") == SQLITE:
        yield f"sqlite:///{tmp_path}/empty.sqlite3"
        return
    with new_database(os.environ["TEST_DATABASE_URL"], f"empty_{os.getpid()}") as url:
        yield url


OLD, NEW = ["tests.process.tasks"], ["tests.process.tasks", "tests.process.new_tasks"]


def test_jobs_of_a_task_that_no_worker_knows_wait_for_one_that_does(site):
    moved = write.enqueue()
    Job.objects.update(task="tests.app.moved.write")
    old = site.runworker(IMPORTS=OLD)
    jobs = write_anew.enqueue_many([write_anew.bind() for _ in range(20)])
    known = write.enqueue()
    parked = Job.objects.filter(state="blocked", reason="unknown task")
    wait_until(lambda: parked.count() == len(jobs), "the unknown to be parked")
    wait_until(lambda: outcomes(known.id) == ["succeeded"], "the known to be done")
    wait_until(lambda: outcomes(moved.id) == ["succeeded"], "the task to be found where it was")
    assert old.events("task.discovered")[0]["function"] == "tests.process.tasks.write"
    site.runworker("--no-maintenance", IMPORTS=NEW)
    site.wait_until_done()
    assert all(outcomes(job.id) == ["succeeded"] for job in jobs)
    assert set(Job.objects.values_list("fence", flat=True)) == {1}
    site.assert_exactly_once()
    assert old.events("jobs.parked")
    assert old.events("jobs.admitted")


def test_a_worker_refuses_an_older_schema_or_waits_for_the_migrations(
    site, empty_url, django_db_blocker: DjangoDbBlocker
):
    refusing = site.runworker(url=empty_url)
    assert refusing.wait() == ABORTED
    assert "run `manage.py migrate`" in refusing.text()
    waiting = [site.runworker("--wait-for-migrations", url=empty_url) for _ in range(2)]
    for program in waiting:
        program.wait_for("schema.waiting")
    assert waiting[0].stop() == CLEAN
    with django_on(empty_url, django_db_blocker):
        migrate()
    waiting[1].wait_for("schema.ready")
    waiting[1].wait_for("process.started")
    assert waiting[1].stop() == CLEAN
