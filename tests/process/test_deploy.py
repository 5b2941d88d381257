"""A rolling deploy: workers that do not know a task yet leave its jobs alone, or find it."""

from jobqueue.models import Job
from tests.process.harness import outcomes
from tests.process.new_tasks import write_anew
from tests.process.tasks import write
from tests.process.waiting import wait_until

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
