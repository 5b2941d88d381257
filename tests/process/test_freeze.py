"""SIGSTOP past the lease, then SIGCONT: the zombie is refused, and its log says by what.

The other worker's lease is long, so that nobody but the frozen process loses one. Its supervisor
is frozen with it: it would kill a frozen child (`tests.process.test_timeouts`).
"""

import os
import signal
from functools import partial

import pytest

from jobqueue.models import Attempt
from jobqueue.runtime.exit_codes import LEASE_LOST
from tests.app.models import Effect
from tests.process.harness import (
    Program,
    Site,
    assert_sound,
    backends,
    freeze,
    is_running,
    outcomes,
)
from tests.process.storage import UNGUARDED
from tests.process.tasks import overstay, write, write_and_wait
from tests.waiting import wait_until

SHORT_LEASE = {"LEASE_SECONDS": 2, "HEARTBEAT_SECONDS": 0.3}
ONLY_THE_GUARD = {"SELF_EXIT": False, "END_SESSIONS": False}

on_leases = pytest.mark.postgres_only("on SQLite a frozen worker keeps its jobs until a deadline")


@on_leases
def test_worker_frozen_in_a_job_past_its_lease_exits_when_thawed(site):
    program = site.runworker("--no-maintenance", **SHORT_LEASE)
    job = write_and_wait.enqueue("gate")
    zombie = site.wait_for_note("written")["pid"]
    frozen = [program.pid, zombie]
    let_another_run_it(site, frozen)
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    program.wait_for("process.exited", code=LEASE_LOST)
    assert program.events("worker.self_exit", pid=zombie)
    assert outcomes(job.id) == ["lost", "succeeded"]
    site.assert_exactly_once()
    assert program.stop() == 0


@on_leases
@pytest.mark.parametrize("end_sessions", [True, False], ids=["ended", "idle"])
def test_worker_frozen_between_finish_and_commit_keeps_neither_the_row_nor_its_effect(
    site, end_sessions
):
    site.folder.plant("finish.before_commit", "stop")
    program = site.runworker("--no-maintenance", **SHORT_LEASE, END_SESSIONS=end_sessions)
    job = write.enqueue()
    zombie = site.wait_for_note("fault")["pid"]
    let_another_run_it(site, [program.pid, zombie], END_SESSIONS=end_sessions)
    os.kill(zombie, signal.SIGCONT)
    os.kill(program.pid, signal.SIGCONT)
    program.wait_for("process.exited", code=LEASE_LOST)
    assert outcomes(job.id) == ["lost", "succeeded"]
    site.assert_exactly_once()


@on_leases
def test_guard_alone_refuses_a_zombie(site):
    program = thaw_a_zombie_that_lives_on(site)
    program.wait_for("job.lease_lost")
    assert not program.events("worker.self_exit")
    site.assert_exactly_once()


@on_leases
def test_without_the_guard_a_zombie_leaves_a_second_effect(site):
    thaw_a_zombie_that_lives_on(site, STORAGE=UNGUARDED)
    wait_until(lambda: Effect.objects.count() == 2, "the zombie's effect")
    with pytest.raises(AssertionError):
        site.assert_exactly_once()


@on_leases
def test_session_ended_between_finish_and_commit_runs_the_job_again_uncharged(site):
    """Frozen for longer than a session may idle there, but not past the lease."""
    site.folder.plant("finish.idle", "stop")
    program = site.runworker()
    job = write.enqueue()
    fault = site.wait_for_note("fault")
    frozen = fault["pid"]
    wait_until(lambda: fault["backend"] not in backends(), "the server to end the idle session")
    os.kill(frozen, signal.SIGCONT)
    site.wait_until_done()
    assert outcomes(job.id) == ["succeeded"]
    assert len(site.folder.notes("start")) == 2
    assert is_running(frozen)
    site.assert_exactly_once()
    assert program.stop() == 0


@pytest.mark.sqlite_only("PostgreSQL goes by leases")
def test_frozen_worker_on_one_host_keeps_its_job_until_the_deadline_and_is_then_refused(site):
    program = site.runworker()
    job = overstay.enqueue("gate")
    zombie = site.wait_for_note("start")["pid"]
    for pid in (program.pid, zombie):
        freeze(pid)
    site.folder.open_gate("gate")
    site.runworker()
    site.wait_until_done()
    os.kill(zombie, signal.SIGCONT)
    program.wait_for("job.lease_lost", pid=zombie)
    os.kill(program.pid, signal.SIGCONT)
    assert outcomes(job.id) == ["timed_out", "succeeded"]
    site.assert_exactly_once()


def thaw_a_zombie_that_lives_on(site: Site, **options: object) -> Program:
    """Freeze a worker in a job past its lease, let another finish the job, thaw the worker."""
    program = site.runworker("--no-maintenance", **SHORT_LEASE, **ONLY_THE_GUARD, **options)
    write_and_wait.enqueue("gate")
    zombie = site.wait_for_note("written")["pid"]
    let_another_run_it(site, [zombie], **ONLY_THE_GUARD)
    os.kill(zombie, signal.SIGCONT)
    return program


def let_another_run_it(site: Site, frozen: list[int], **options: object) -> None:
    """Freeze processes in the order given; return when another worker has ended their job."""
    for pid in frozen:
        freeze(pid)
    site.folder.open_gate("gate")
    site.runworker(**options)
    wait_until(partial(Attempt.objects.filter(outcome="succeeded").exists), "another to finish")
    assert_sound()
