"""Reapers and schedulers in any number: none leads, and a paused one comes back to no work."""

import os
import signal
from datetime import timedelta

from jobqueue.models import Job, Schedule, Tick
from tests.process.harness import outcomes
from tests.process.tasks import nothing, write, write_and_wait
from tests.waiting import wait_until

KEEN = {"LEASE_SECONDS": 1, "HEARTBEAT_SECONDS": 0.3}


def test_reaper_paused_between_look_and_release_takes_nothing_back_a_second_time(site):
    victim = site.runworker("--no-maintenance", **KEEN)
    job = write_and_wait.enqueue("gate")
    site.wait_for_note("written")
    victim.kill_all()
    site.folder.plant("running.read", "stop")
    reapers = [site.start("runreaper", **KEEN) for _ in range(2)]
    paused = site.wait_for_note("fault")["pid"]
    wait_until(lambda: outcomes(job.id), "the other reaper to take the job")
    site.folder.open_gate("gate")
    site.runworker("--no-maintenance")
    site.wait_until_done()
    os.kill(paused, signal.SIGCONT)
    (reaper,) = [each for each in reapers if each.pid == paused]
    assert reaper.stop() == 0
    assert outcomes(job.id) == ["lost", "succeeded"]
    assert not reaper.events("job.reaped")
    site.assert_exactly_once()


def test_due_jobs_start_once_with_two_schedulers_of_which_one_is_paused(site):
    site.runworker("--no-maintenance")
    schedulers = [site.start("runscheduler") for _ in range(2)]
    for scheduler in schedulers:
        scheduler.wait_for("service.started")
    soon = write.using(run_after=timedelta(seconds=0.5))
    first = soon.enqueue_many([soon.bind() for _ in range(20)])
    schedulers[0].send(signal.SIGSTOP)
    site.wait_until_done()
    schedulers[0].send(signal.SIGCONT)
    second = soon.enqueue_many([soon.bind() for _ in range(20)])
    site.wait_until_done()
    assert len(site.folder.notes("start")) == 40
    assert all(outcomes(job.id) == ["succeeded"] for job in first + second)
    site.assert_exactly_once()
    assert [scheduler.stop() for scheduler in schedulers] == [0, 0]


def test_each_tick_is_one_job_with_schedulers_frozen_killed_and_started(site):
    Schedule(name="each second", task=nothing.module_path, every_seconds=1, missed="all").save()
    frozen, killed, third = [site.start("runscheduler") for _ in range(3)]
    for scheduler in (frozen, killed, third):
        scheduler.wait_for("service.started")

    def wait_for_ticks(more: int) -> None:
        before = Tick.objects.count()
        wait_until(lambda: Tick.objects.count() >= before + more, f"{more} more ticks")

    wait_for_ticks(2)
    frozen.send(signal.SIGSTOP)
    killed.kill()
    wait_for_ticks(2)
    frozen.send(signal.SIGCONT)
    third.stop()
    wait_for_ticks(2)
    frozen.stop()
    ticks = list(Job.objects.order_by("tick").values_list("tick", flat=True))
    assert ticks == [ticks[0] + timedelta(seconds=n) for n in range(len(ticks))]
    assert len(ticks) == Tick.objects.count() >= 6
