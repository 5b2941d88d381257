"""SIGKILL of those who hold a limit: never more run than it says, and nobody waits for ever.

TEST_KILLS=100 in the environment kills more often than the suite has time for.
"""

import os
import signal

from jobqueue.models import Job, Limit, Worker
from tests.process.tasks import wait_under_a_limit, write
from tests.waiting import wait_until

KILLS = int(os.environ.get("TEST_KILLS", "3"))


def holders() -> list[Job]:
    held = list(Job.objects.filter(state="running").exclude(limit_key=None))
    assert len(held) <= 3
    return held


def test_killed_holders_of_a_limit_are_replaced_and_never_exceeded(site):
    program = site.runworker("--processes", "3", "--threads", "2", SUSPICIONS=100)
    program.workers(3)
    jobs = [wait_under_a_limit.enqueue("gate") for _ in range(9)]
    for _ in range(KILLS):
        wait_until(lambda: len(holders()) == 3, "three to run")
        assert Job.objects.filter(state="blocked", reason="limit").count() <= 6
        victim = Worker.objects.get(pk=holders()[0].worker)
        os.kill(victim.pid, signal.SIGKILL)
        wait_until(lambda v=victim: v.pk not in {j.worker for j in holders()}, "them to be free")
        free = write.enqueue()  # stands behind all that wait for the key
        wait_until(lambda f=free: Job.objects.get(pk=f.id).state == "succeeded", "the free job")
    wait_until(lambda: len(holders()) == 3, "three to run")
    site.folder.open_gate("gate")
    wait_until(lambda: not (holders(), Job.objects.exclude(state="succeeded").exists())[1], "all")
    assert len(jobs) == 9
    site.assert_exactly_once()
    assert Limit.objects.get().running == 3
    assert program.stop() == 0
