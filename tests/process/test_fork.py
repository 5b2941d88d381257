"""A process that a job forks may finish nothing: neither the job nor anybody else's work."""

import os

import pytest

from jobqueue.engine.environment import FORKED_COPY
from jobqueue.models import Job
from tests.app.models import Effect
from tests.process.harness import assert_sound, outcomes
from tests.process.tasks import (
    commit_twice,
    nothing_but_what_a_copy_keeps,
    return_twice,
    return_twice_async,
    return_twice_plain,
)

TASKS = [return_twice, return_twice_plain, return_twice_async, commit_twice]


def test_forked_copy_that_goes_on_as_the_job_ends_without_finishing_it(site):
    jobs = [task.enqueue() for task in TASKS]
    program = site.runworker("--until-empty")
    assert program.wait() == 0
    for job in jobs:
        row = Job.objects.get(pk=job.id)
        assert (row.task, row.result) == (row.task, FORKED_COPY)
        assert outcomes(job.id) == ["succeeded"]
        writes = not row.task.endswith("async")
        assert Effect.objects.filter(job_id=job.id).count() == int(writes)
    assert_sound()


@pytest.mark.postgres_only("SQLite has no sessions")
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="asks Linux what a copy keeps")
def test_a_copy_keeps_no_session_though_another_thread_was_just_opening_it(site):
    looked = nothing_but_what_a_copy_keeps.enqueue()
    assert site.runworker("--until-empty").wait() == 0
    silent, connecting, foreign = Job.objects.get(pk=looked.id).result
    assert (silent, connecting) == ("/dev/null", "/dev/null")
    assert foreign.startswith("socket:")
